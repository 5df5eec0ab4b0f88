"""Read releases from files, regardless of the program that wrote them."""
