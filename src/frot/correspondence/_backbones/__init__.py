"""Networks behind one protocol."""
