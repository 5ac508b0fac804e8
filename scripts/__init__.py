"""What makes the data and pages that come with the project."""
