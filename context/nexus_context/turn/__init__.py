"""One chat turn: snapshot + conversation + request → what a model is sent, every token with its row."""
