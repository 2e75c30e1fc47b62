"""Causal attention of bf16 rows of 64 columns, as a Triton kernel; run this file to write triton_flash.ptx beside it."""
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def attention(q, k, v, o, lse, scale_log2, seqlen_q, seqlen_kv, num_heads_q, group,
              q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
              o_batch, o_head, o_row, lse_batch, lse_head,
              BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr):
    b = tl.program_id(1) // num_heads_q
    h = tl.program_id(1) % num_heads_q
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N)
    columns = tl.arange(0, HEAD_DIM)
    q_tile = tl.load(q + b.to(tl.int64) * q_batch + h.to(tl.int64) * q_head + rows[:, None].to(tl.int64) * q_row + columns[None, :],
                     mask=rows[:, None] < seqlen_q, other=0.0)
    k_first = k + b.to(tl.int64) * k_batch + (h // group).to(tl.int64) * k_head
    v_first = v + b.to(tl.int64) * v_batch + (h // group).to(tl.int64) * v_head
    row_max = tl.full([BLOCK_M], float("-inf"), tl.float32)
    row_sum = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, HEAD_DIM], tl.float32)
    diagonal = seqlen_kv - seqlen_q
    end = tl.minimum(seqlen_kv, (tl.program_id(0) + 1) * BLOCK_M + diagonal)
    for start in range(0, end, BLOCK_N):
        j = start + keys
        k_tile = tl.load(k_first + j[None, :].to(tl.int64) * k_row + columns[:, None], mask=j[None, :] < seqlen_kv, other=0.0)
        z = tl.dot(q_tile, k_tile) * scale_log2
        seen = (j[None, :] < seqlen_kv) & (j[None, :] <= rows[:, None] + diagonal)
        z = tl.where(seen, z, float("-inf"))
        larger = tl.maximum(row_max, tl.max(z, 1))
        shift = tl.where(larger == float("-inf"), 0.0, larger)
        p = tl.exp2(z - shift[:, None])
        rescale = tl.exp2(row_max - shift)
        row_sum = row_sum * rescale + tl.sum(p, 1)
        v_tile = tl.load(v_first + j[:, None].to(tl.int64) * v_row + columns[None, :], mask=j[:, None] < seqlen_kv, other=0.0)
        acc = acc * rescale[:, None]
        acc = tl.dot(p.to(v_tile.dtype), v_tile, acc)
        row_max = larger
    empty = row_sum == 0.0
    acc = tl.where(empty[:, None], 0.0, acc / tl.where(empty, 1.0, row_sum)[:, None])
    tl.store(o + b.to(tl.int64) * o_batch + h.to(tl.int64) * o_head + rows[:, None].to(tl.int64) * o_row + columns[None, :],
             acc.to(o.dtype.element_ty), mask=rows[:, None] < seqlen_q)
    nats = tl.where(empty, float("-inf"), (row_max + tl.log2(row_sum)) * 0.6931471805599453)
    tl.store(lse + b.to(tl.int64) * lse_batch + h.to(tl.int64) * lse_head + rows, nats, mask=rows < seqlen_q)


pointers = {"q": "*bf16", "k": "*bf16", "v": "*bf16", "o": "*bf16", "lse": "*fp32", "scale_log2": "fp32"}
signature = {name: pointers.get(name, "i64" if "_" in name and name.split("_")[0] in ("q", "k", "v", "o", "lse") else "i32")
             for name in attention.arg_names}
constants = {"BLOCK_M": 64, "BLOCK_N": 64, "HEAD_DIM": 64}
for name in constants:
    signature[name] = "constexpr"
compiled = triton.compile(ASTSource(attention, signature, constants), target=GPUTarget("cuda", 80, 32),
                          options={"num_warps": 4, "num_stages": 2})
print(compiled.metadata.shared, compiled.metadata.num_warps, compiled.metadata.name)
open("triton_flash.ptx", "w").write(compiled.asm["ptx"])
