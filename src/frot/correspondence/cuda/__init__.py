"""The paper's plan of one pair on a CUDA device, in a few milliseconds."""
