"""What contributors can infer, each of whom also knows what they reported themselves."""
