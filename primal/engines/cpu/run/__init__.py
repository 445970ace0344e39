"""From records to results: machine code found or made, threads, the walk through a program."""
