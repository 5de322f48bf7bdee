"""What a number is: numerals in text, digits in ids, and the vectors they are folded into."""
