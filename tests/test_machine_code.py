"""Counts in the main loop of disassembled kernels."""

from perfmodel.live.machine_code import COUNTS, loop_counts

SASS = """
.text.gemm:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   LDGSTS.E.BYPASS.128 [R9], desc[UR16][R36.64], P2 ;
.L_x_0:
        /*0020*/                   IADD3 R3, R3, 0x1, RZ ;
        /*0030*/               @P0 BRA `(.L_x_0) ;
.L_x_2:
        /*0040*/                   WARPGROUP.ARRIVE ;
        /*0050*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8].tnspB, R24, gsb0 ;
        /*0060*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0070*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8].tnspB, R24, gsb0 ;
        /*0080*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0090*/                   LDGSTS.E.BYPASS.128 [R119], desc[UR16][R4.64], P3 ;
        /*00a0*/               @P0 BRA `(.L_x_2) ;
        /*00b0*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8].tnspB, R24, gsb0 ;
        /*00c0*/                   EXIT ;
"""

GCN = """
.LBB0_1:
\ts_add_i32 s3, s3, 1
\tv_mfma_f32_32x32x8f16 a[0:15], v[2:3], v[4:5], a[0:15]
\tds_read_b128 v[2:5], v8
\tv_mfma_f32_32x32x8f16 a[0:15], v[2:3], v[4:5], a[0:15]
\ts_cbranch_scc1 .LBB0_1
\ts_endpgm
"""


def test_the_loop_with_the_matrix_instructions_is_counted():
    assert loop_counts(SASS, "cuda") == dict(zip(COUNTS, (7, 2, 0, 1, 2)))


def test_amd_code():
    counts = loop_counts(GCN, "hip")
    assert counts["mma_per_step"] == 2
    assert counts["instructions_per_step"] == 5


def test_the_shortest_of_loops_with_as_many_matrix_instructions():
    nested = SASS.replace("EXIT ;", "BRA `(.L_x_0) ;\n        /*00d0*/   EXIT ;")
    outer = loop_counts(nested, "cuda")
    # The outer loop holds a third one.
    assert outer["wgmma_per_step"] == 3
    same = nested.replace("/*00b0*/                   HGMMA", "/*00b0*/                   FADD")
    assert loop_counts(same, "cuda")["instructions_per_step"] == 7


def test_no_loop_no_counts():
    assert loop_counts("", "cuda") == {}
    assert loop_counts(".L_x_0:\n        /*0030*/   BRA `(.L_x_0) ;\n", "cuda") == {}
