"""What is known of speech before the first word is taught: statistics of other words."""
