"""GEMM kernels on a GPU: candidates, isolated and concurrent time, picks."""
