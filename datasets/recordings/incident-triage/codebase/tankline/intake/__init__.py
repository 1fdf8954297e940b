"""Pick-ups as the trucks report them."""
