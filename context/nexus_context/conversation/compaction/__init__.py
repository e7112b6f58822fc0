"""Old messages become a summary, with a receipt of what is lost: when, what, by whom, and the way back."""
