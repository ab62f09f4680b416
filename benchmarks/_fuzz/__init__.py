"""The fuzzer: problems of many kinds, what must hold of the answers, and the truth about them."""
