"""The entropic problem in any array library, alone, in batches and in little memory."""
