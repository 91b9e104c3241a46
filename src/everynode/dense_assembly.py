"""The kernel of dense products, as LLVM assembly: for nodes x channels, with AVX-512.

It computes ``out = alpha * a @ b + beta * out``. The rows of ``b`` and ``out`` (m columns) are
contiguous; ``a`` has any strides, so that it may be a transpose. Four rows of the result times 64
float32 columns stay in registers. The inner dimension goes in blocks that fit in the first cache.
"""

from __future__ import annotations

#: Arguments of the kernel: sizes (i), arrays (p), numbers (d).
ARGUMENTS = {"multiply": "iiipiippdd"}
#: Rows of the result, and bytes of each, that are held in registers at once.
ROWS, CHUNKS = 4, (256, 64)
#: Inner indices that are multiplied before the next block.
BLOCK = 64
#: LLVM's names of the types, and their sizes.
TYPES = {"float32": ("float", "f32", 4), "float64": ("double", "f64", 8)}


def assembly(dtype: str) -> dict[str, tuple[str, str]]:
    """Return the text of the kernel for 'float32' or 'float64', and its name there.

    Parameters of the kernel: rows, inner and columns; a and its two strides; b; out; alpha; beta.
    """
    real, suffix, size = TYPES[dtype]
    widths = [chunk // size for chunk in CHUNKS]
    declared = "\n".join(
        f"declare <{w} x REAL> @llvm.fmuladd.v{w}SUFFIX(<{w} x REAL>, <{w} x REAL>, <{w} x REAL>)"
        for w in widths
    )
    narrow = "fptrunc double {} to float" if size == 4 else "fadd double {}, 0.0"
    text = f"""{declared}
define void @kernel(i64 %n, i64 %inner, i64 %m, ptr noalias %a, i64 %down, i64 %right,
                    ptr noalias %b, ptr noalias %out, double %alpha.d, double %beta.d) {{
entry:
  %alpha = {narrow.format("%alpha.d")}
  %beta = {narrow.format("%beta.d")}
  %n4 = and i64 %n, -{ROWS}
  br label %block
block:
  %from = phi i64 [0, %entry], [%next.block, %block.end]
  %next.block = add i64 %from, {BLOCK}
  %ends = icmp slt i64 %next.block, %inner
  %to = select i1 %ends, i64 %next.block, i64 %inner
  %first = icmp eq i64 %from, 0
  %keep = select i1 %first, REAL %beta, REAL 1.0
  %has.base = fcmp une REAL %keep, 0.0
  br label %many
{_rows("many", ROWS, "%n4", "0", "block", "one", widths)}
{_rows("one", 1, "%n", "%i.many", "many", "block.end", widths)}
block.end:
  br i1 %ends, label %block, label %done
done:
  ret void
}}"""
    return {"multiply": (text.replace("REAL", real).replace("SUFFIX", suffix), "kernel")}


def _rows(
    name: str, rows: int, stop: str, start: str, before: str, after: str, widths: list[int]
) -> str:
    """Return the loop over groups of rows, from the block ``name`` to a jump to ``after``."""
    chunks, start_j, label = [], "0", f"{name}.group"
    following = [*(f"{name}.{w}" for w in widths[1:]), f"{name}.end"]
    for w, then in zip(widths, following, strict=True):
        chunks.append(_columns(f"{name}.{w}", rows, w, start_j, label, then, f"%i.{name}"))
        start_j, label = f"%j.{name}.{w}", f"{name}.{w}"
    return f"""{name}:
  %i.{name} = phi i64 [{start}, %{before}], [%i.{name}.next, %{name}.end]
  %more.{name} = icmp slt i64 %i.{name}, {stop}
  br i1 %more.{name}, label %{name}.group, label %{after}
{name}.group:
  %i.{name}.next = add i64 %i.{name}, {rows}
  br label %{name}.{widths[0]}
{chr(10).join(chunks)}
{name}.end:
  br label %{name}"""


def _columns(s: str, rows: int, w: int, start: str, before: str, after: str, i: str) -> str:
    """Return the loop over chunks of ``w`` columns of some rows, as blocks named after ``s``."""
    v, each, add = f"<{w} x REAL>", range(rows), f"@llvm.fmuladd.v{w}SUFFIX"
    places = "\n".join(
        f"""  %row.{s}.{r} = add i64 {i}, {r}
  %skip.{s}.{r} = mul i64 %row.{s}.{r}, %down
  %a.{s}.{r} = getelementptr REAL, ptr %a, i64 %skip.{s}.{r}"""
        for r in each
    )
    sums = "\n".join(
        f"  %sum.{s}.{r} = phi {v} [zeroinitializer, %{s}.start], [%next.{s}.{r}, %{s}.inner]"
        for r in each
    )
    steps = "\n".join(
        f"""  %p.a.{s}.{r} = getelementptr REAL, ptr %a.{s}.{r}, i64 %along.{s}
  %one.{s}.{r} = load REAL, ptr %p.a.{s}.{r}
  %two.{s}.{r} = insertelement {v} poison, REAL %one.{s}.{r}, i32 0
  %all.{s}.{r} = shufflevector {v} %two.{s}.{r}, {v} poison, <{w} x i32> zeroinitializer
  %next.{s}.{r} = call {v} {add}({v} %all.{s}.{r}, {v} %b.{s}, {v} %sum.{s}.{r})"""
        for r in each
    )
    writes = "\n".join(
        f"""  %to.{s}.{r} = mul i64 %row.{s}.{r}, %m
  %at.{s}.{r} = add i64 %to.{s}.{r}, %j.{s}
  %p.out.{s}.{r} = getelementptr REAL, ptr %out, i64 %at.{s}.{r}
  %scaled.{s}.{r} = fmul {v} %alpha.{s}, %next.{s}.{r}"""
        for r in each
    )
    stores = "\n".join(f"  store {v} %scaled.{s}.{r}, ptr %p.out.{s}.{r}, align 4" for r in each)
    adds = "\n".join(
        f"""  %old.{s}.{r} = load {v}, ptr %p.out.{s}.{r}, align 4
  %new.{s}.{r} = call {v} {add}({v} %keep.{s}, {v} %old.{s}.{r}, {v} %scaled.{s}.{r})
  store {v} %new.{s}.{r}, ptr %p.out.{s}.{r}, align 4"""
        for r in each
    )
    return f"""{s}:
  %j.{s} = phi i64 [{start}, %{before}], [%j.{s}.next, %{s}.end]
  %j.{s}.next = add i64 %j.{s}, {w}
  %fits.{s} = icmp sle i64 %j.{s}.next, %m
  br i1 %fits.{s}, label %{s}.start, label %{after}
{s}.start:
{places}
  br label %{s}.inner
{s}.inner:
  %k.{s} = phi i64 [%from, %{s}.start], [%k.{s}.next, %{s}.inner]
{sums}
  %b.row.{s} = mul i64 %k.{s}, %m
  %b.at.{s} = add i64 %b.row.{s}, %j.{s}
  %p.b.{s} = getelementptr REAL, ptr %b, i64 %b.at.{s}
  %b.{s} = load {v}, ptr %p.b.{s}, align 4
  %along.{s} = mul i64 %k.{s}, %right
{steps}
  %k.{s}.next = add i64 %k.{s}, 1
  %again.{s} = icmp slt i64 %k.{s}.next, %to
  br i1 %again.{s}, label %{s}.inner, label %{s}.write
{s}.write:
  %alpha.one.{s} = insertelement {v} poison, REAL %alpha, i32 0
  %alpha.{s} = shufflevector {v} %alpha.one.{s}, {v} poison, <{w} x i32> zeroinitializer
  %keep.one.{s} = insertelement {v} poison, REAL %keep, i32 0
  %keep.{s} = shufflevector {v} %keep.one.{s}, {v} poison, <{w} x i32> zeroinitializer
{writes}
  br i1 %has.base, label %{s}.add, label %{s}.store
{s}.add:
{adds}
  br label %{s}.end
{s}.store:
{stores}
  br label %{s}.end
{s}.end:
  br label %{s}"""
