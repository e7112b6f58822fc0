"""How the files of other assistants are read: what their rooms share."""
