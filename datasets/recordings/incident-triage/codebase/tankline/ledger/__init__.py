"""What a farm is paid, and what is deducted."""
