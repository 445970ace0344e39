"""What a program computes together, in which order, and where results lie."""
