"""Live measurement: kernels of our own and the vendor's library, timed alone and together.

Needs a GPU and the extra ``measure`` (torch and triton). Only `triton_gemm`, `compiler`,
`operands`, `graphs`, `runner` and `probe_kernels` touch them; plans, campaigns, verification and
recorded runs are plain Python, so that they can be tested anywhere.
"""
