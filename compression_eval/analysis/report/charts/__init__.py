"""Pictures of a report's figures. No text of a conversation stands in them."""
