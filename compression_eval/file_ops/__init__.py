"""Which files the tool calls of a conversation touched, and what became of each."""
