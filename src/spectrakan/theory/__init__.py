"""What can be proved, measured and read off a trained operator."""
