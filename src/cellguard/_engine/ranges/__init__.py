"""What an attacker can compute: the least and largest value of every cell."""
