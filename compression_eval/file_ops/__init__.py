"""The files that a conversation's tool calls touched, and what became of each."""
