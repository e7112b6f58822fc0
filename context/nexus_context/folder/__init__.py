"""What a folder says to a model: layers, skills, prompt; frozen in a snapshot."""
