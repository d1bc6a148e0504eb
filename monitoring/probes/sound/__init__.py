"""How loud it is: meters, microphones, the fan law, the data sheet."""
