"""The kernels of sparse products, as LLVM assembly.

A compiler's vectorizer would work along the entries of a row, which are few. These kernels hold
some columns of a result row in registers instead, while they go through the row's entries. torch
calls MKL for the same, which takes two to six times as long on the processors measured.

The matrix is in CSR order: ``crow``, ``col`` (int32) and ``values``. Dense arrays have ``c``
columns. The kernels do rows ``first`` to ``end``, so that threads can share the rows.

========  ========================================================================
kernel    result
========  ========================================================================
gather    ``out[i] = alpha * sum(v * x[j]) + beta * base[i]`` over entries (i, j, v)
scatter   ``out[j] += alpha * v * x[i]`` for each entry
dots      ``out[e] += a[i] . b[j]`` for each entry e
compact   ``crow``, ``col`` and ``values`` without the entries of value 0
========  ========================================================================
"""

from __future__ import annotations

from collections.abc import Callable

#: The arguments: arrays (p), sizes (i) and numbers (d).
ARGUMENTS = {
    "gather": "iiipppppddp",
    "scatter": "iiippppdp",
    "dots": "iiippppp",
    "compact": "iipppppp",
}
#: Bytes of a row that are held in registers at once, the widest first.
CHUNKS = (256, 64, 16)
#: LLVM's names of the types, and their sizes.
TYPES = {"float32": ("float", "f32", 4), "float64": ("double", "f64", 8)}


def assembly(dtype: str) -> dict[str, tuple[str, str]]:
    """Return the text of each kernel for 'float32' or 'float64', and the name of its function."""
    real, suffix, size = TYPES[dtype]
    widths = sorted({*(chunk // size for chunk in CHUNKS), 1}, reverse=True)
    texts = {
        "gather": _by_row(
            "ptr noalias %x, ptr %base, double %alpha, double %beta, ptr %out",
            f"""  %alpha.r = fptrunc double %alpha to {real}
  %beta.r = fptrunc double %beta to {real}
  %has.base = fcmp une double %beta, 0.0""",
            widths,
            _gather,
        ),
        "scatter": _by_row(
            "ptr noalias %x, double %alpha, ptr noalias %out",
            f"  %alpha.r = fptrunc double %alpha to {real}",
            widths,
            _scatter,
        ),
        "dots": _by_row(
            "ptr noalias %a, ptr noalias %x, ptr noalias %out", "", widths, _dots, values=False
        ),
        "compact": COMPACT,
    }
    if size == 8:
        texts = {
            name: text.replace("fptrunc double %alpha to double", "fadd double %alpha, 0.0")
            .replace("fptrunc double %beta to double", "fadd double %beta, 0.0")
            for name, text in texts.items()
        }  # fmt: skip
    return {
        name: (text.replace("REAL", real).replace("SUFFIX", suffix), "kernel")
        for name, text in texts.items()
    }


def _by_row(
    parameters: str, before: str, widths: list[int], body: Callable[[int], str], values: bool = True
) -> str:
    """Return a kernel that goes through rows, and in each through chunks of columns.

    ``body``: the blocks of a chunk, from ``%w.start`` to a jump to ``%w.end``.
    """
    declared = "\n".join(
        f"declare <{w} x REAL> @llvm.fmuladd.v{w}SUFFIX(<{w} x REAL>, <{w} x REAL>, <{w} x REAL>)\n"
        f"declare REAL @llvm.vector.reduce.fadd.v{w}SUFFIX(REAL, <{w} x REAL>)"
        for w in widths
    )
    chunks, before_k, label = [], "0", "row"
    for w, following in zip(widths, [*(f"w{w}" for w in widths[1:]), "row.end"], strict=True):
        chunks.append(f"""w{w}:
  %k{w} = phi i64 [{before_k}, %{label}], [%k{w}.next, %w{w}.end]
  %k{w}.next = add i64 %k{w}, {w}
  %fits{w} = icmp sle i64 %k{w}.next, %c
  br i1 %fits{w}, label %w{w}.start, label %{following}
{body(w)}
w{w}.end:
  br label %w{w}""")
        before_k, label = f"%k{w}", f"w{w}"
    entries = "ptr noalias %values, " if values else ""
    return f"""{declared}
define void @kernel(i64 %first, i64 %stop, i64 %c, ptr noalias %crow, ptr noalias %col,
                    {entries}{parameters}) {{
entry:
{before}
  %some = icmp slt i64 %first, %stop
  br i1 %some, label %row, label %done
row:
  %i = phi i64 [%first, %entry], [%i.next, %row.end]
  %i.next = add i64 %i, 1
  %p.start = getelementptr i32, ptr %crow, i64 %i
  %p.end = getelementptr i32, ptr %crow, i64 %i.next
  %start.32 = load i32, ptr %p.start
  %end.32 = load i32, ptr %p.end
  %start = sext i32 %start.32 to i64
  %end = sext i32 %end.32 to i64
  %any = icmp slt i64 %start, %end
  %own = mul i64 %i, %c
  br label %w{widths[0]}
{chr(10).join(chunks)}
row.end:
  %more = icmp slt i64 %i.next, %stop
  br i1 %more, label %row, label %done
done:
  ret void
}}"""


def _entry(w: int, phi: str = "") -> str:
    """Return the start of the loop over the entries: the entry e, and the place of its column."""
    return f"""w{w}.entry:
  %e{w} = phi i64 [%start, %w{w}.start], [%e{w}.next, %w{w}.entry]{phi}
  %p.col{w} = getelementptr i32, ptr %col, i64 %e{w}
  %j32.{w} = load i32, ptr %p.col{w}
  %j{w} = sext i32 %j32.{w} to i64
  %row{w} = mul i64 %j{w}, %c
  %at{w} = add i64 %row{w}, %k{w}
  %e{w}.next = add i64 %e{w}, 1
  %again{w} = icmp slt i64 %e{w}.next, %end"""


def _splat(w: int, name: str, scalar: str) -> str:
    """Return a vector of equal numbers."""
    v = f"<{w} x REAL>"
    return f"""  %{name}{w}.one = insertelement {v} poison, REAL {scalar}, i32 0
  %{name}{w} = shufflevector {v} %{name}{w}.one, {v} poison, <{w} x i32> zeroinitializer"""


def _value(w: int) -> str:
    return f"""  %p.value{w} = getelementptr REAL, ptr %values, i64 %e{w}
  %value{w}.r = load REAL, ptr %p.value{w}
{_splat(w, "value", f"%value{w}.r")}"""


def _gather(w: int) -> str:
    v = f"<{w} x REAL>"
    phi = f"\n  %sum{w} = phi {v} [zeroinitializer, %w{w}.start], [%sum{w}.next, %w{w}.entry]"
    return f"""w{w}.start:
  br i1 %any, label %w{w}.entry, label %w{w}.sum
{_entry(w, phi)}
{_value(w)}
  %p.x{w} = getelementptr REAL, ptr %x, i64 %at{w}
  %x{w} = load {v}, ptr %p.x{w}, align 4
  %sum{w}.next = call {v} @llvm.fmuladd.v{w}SUFFIX({v} %value{w}, {v} %x{w}, {v} %sum{w})
  br i1 %again{w}, label %w{w}.entry, label %w{w}.sum
w{w}.sum:
  %total{w} = phi {v} [zeroinitializer, %w{w}.start], [%sum{w}.next, %w{w}.entry]
{_splat(w, "alpha", "%alpha.r")}
  %scaled{w} = fmul {v} %alpha{w}, %total{w}
  %to{w} = add i64 %own, %k{w}
  br i1 %has.base, label %w{w}.add, label %w{w}.store
w{w}.add:
  %p.base{w} = getelementptr REAL, ptr %base, i64 %to{w}
  %base{w} = load {v}, ptr %p.base{w}, align 4
{_splat(w, "beta", "%beta.r")}
  %added{w} = call {v} @llvm.fmuladd.v{w}SUFFIX({v} %beta{w}, {v} %base{w}, {v} %scaled{w})
  br label %w{w}.store
w{w}.store:
  %result{w} = phi {v} [%scaled{w}, %w{w}.sum], [%added{w}, %w{w}.add]
  %p.out{w} = getelementptr REAL, ptr %out, i64 %to{w}
  store {v} %result{w}, ptr %p.out{w}, align 4
  br label %w{w}.end"""


def _own_row(w: int, array: str) -> str:
    """Load this row's chunk of an array."""
    return f"""  %from{w} = add i64 %own, %k{w}
  %p.own{w} = getelementptr REAL, ptr %{array}, i64 %from{w}
  %own{w} = load <{w} x REAL>, ptr %p.own{w}, align 4"""


def _scatter(w: int) -> str:
    v = f"<{w} x REAL>"
    return f"""w{w}.start:
{_own_row(w, "x")}
{_splat(w, "alpha", "%alpha.r")}
  %scaled{w} = fmul {v} %alpha{w}, %own{w}
  br i1 %any, label %w{w}.entry, label %w{w}.end
{_entry(w)}
{_value(w)}
  %p.out{w} = getelementptr REAL, ptr %out, i64 %at{w}
  %out{w} = load {v}, ptr %p.out{w}, align 4
  %out{w}.next = call {v} @llvm.fmuladd.v{w}SUFFIX({v} %value{w}, {v} %scaled{w}, {v} %out{w})
  store {v} %out{w}.next, ptr %p.out{w}, align 4
  br i1 %again{w}, label %w{w}.entry, label %w{w}.end"""


def _dots(w: int) -> str:
    v = f"<{w} x REAL>"
    return f"""w{w}.start:
{_own_row(w, "a")}
  br i1 %any, label %w{w}.entry, label %w{w}.end
{_entry(w)}
  %p.x{w} = getelementptr REAL, ptr %x, i64 %at{w}
  %x{w} = load {v}, ptr %p.x{w}, align 4
  %products{w} = fmul {v} %own{w}, %x{w}
  %p.out{w} = getelementptr REAL, ptr %out, i64 %e{w}
  %out{w} = load REAL, ptr %p.out{w}
  %dot{w} = call reassoc REAL @llvm.vector.reduce.fadd.v{w}SUFFIX(REAL %out{w}, {v} %products{w})
  store REAL %dot{w}, ptr %p.out{w}
  br i1 %again{w}, label %w{w}.entry, label %w{w}.end"""


#: Without branches on the values, which a processor could not predict.
COMPACT = """define void @kernel(i64 %first, i64 %stop, ptr noalias %crow, ptr noalias %col,
    ptr noalias %values, ptr noalias %new.crow, ptr noalias %new.col, ptr noalias %new.values) {
entry:
  store i32 0, ptr %new.crow
  %some = icmp slt i64 %first, %stop
  br i1 %some, label %row, label %done
row:
  %i = phi i64 [%first, %entry], [%i.next, %row.end]
  %kept = phi i64 [0, %entry], [%kept.after, %row.end]
  %i.next = add i64 %i, 1
  %p.start = getelementptr i32, ptr %crow, i64 %i
  %p.end = getelementptr i32, ptr %crow, i64 %i.next
  %start.32 = load i32, ptr %p.start
  %end.32 = load i32, ptr %p.end
  %start = sext i32 %start.32 to i64
  %end = sext i32 %end.32 to i64
  %any = icmp slt i64 %start, %end
  br i1 %any, label %each, label %row.end
each:
  %e = phi i64 [%start, %row], [%e.next, %each]
  %to = phi i64 [%kept, %row], [%to.next, %each]
  %p.col = getelementptr i32, ptr %col, i64 %e
  %j = load i32, ptr %p.col
  %p.value = getelementptr REAL, ptr %values, i64 %e
  %value = load REAL, ptr %p.value
  %q.col = getelementptr i32, ptr %new.col, i64 %to
  store i32 %j, ptr %q.col
  %q.value = getelementptr REAL, ptr %new.values, i64 %to
  store REAL %value, ptr %q.value
  %keep = fcmp une REAL %value, 0.0
  %step = zext i1 %keep to i64
  %to.next = add i64 %to, %step
  %e.next = add i64 %e, 1
  %again = icmp slt i64 %e.next, %end
  br i1 %again, label %each, label %row.end
row.end:
  %kept.after = phi i64 [%kept, %row], [%to.next, %each]
  %kept.32 = trunc i64 %kept.after to i32
  %p.new = getelementptr i32, ptr %new.crow, i64 %i.next
  store i32 %kept.32, ptr %p.new
  %more = icmp slt i64 %i.next, %stop
  br i1 %more, label %row, label %done
done:
  ret void
}"""
