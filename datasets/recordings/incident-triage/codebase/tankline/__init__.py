"""Milk collection: from the farm tank to the dairy's silo."""
