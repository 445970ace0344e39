"""Loops and branches: blocks of steps, and short bodies as one native function."""
