"""Makes the files of this folder: small, made up, seeded, with the troubles that real files have.

    python examples/make.py

Every graph has planted communities: nodes of a class are mostly linked to their own, and their columns tell a little about the class.
Needs what everynode needs, and networkx for the GraphML.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
FIRST = (
    "ada", "ben", "cleo", "dan", "eva", "finn", "gia", "hugo", "ines", "jan", "kim", "lea", "max",
    "nora", "otto", "pia", "quin", "rosa", "sam", "tess", "uma", "vito", "wera", "xeno", "yara", "zoe",
)  # fmt: skip
LAST = (
    "abel", "berg", "conti", "dahl", "eder", "fuchs", "gray", "horn", "ito", "jung", "kern",
    "lang", "moser", "nagy", "olsen", "pohl", "rossi", "sato", "tran", "urban", "vogt", "weiss",
)  # fmt: skip


def planted(rng: np.random.Generator, labels: np.ndarray, edges: int, within: float) -> np.ndarray:
    """Edges, a share ``within`` of them between nodes of one class; m x 2, no loops, none twice."""
    n = len(labels)
    found: set[tuple[int, int]] = set()
    while len(found) < edges:
        a = int(rng.integers(n))
        own = np.flatnonzero(labels == labels[a])
        b = int(rng.choice(own)) if rng.random() < within else int(rng.integers(n))
        if a != b:
            found.add((min(a, b), max(a, b)))
    return np.array(sorted(found))[rng.permutation(edges)]


def write(
    name: str,
    heads: list[str],
    rows: list[list[object]],
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> None:
    """A table as delimited text."""
    with (HERE / name).open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(rows)


def people() -> None:
    """400 people of four teams: ids of text, every kind of column, a third of the labels, a few cells missing; and ten newcomers."""
    rng = np.random.default_rng(1)
    teams = ["design", "engineering", "sales", "support"]
    cities = ["Graz", "Lyon", "Oslo", "Porto"]
    labels = rng.choice(4, 400, p=[0.2, 0.35, 0.25, 0.2])
    names: list[str] = []
    while len(names) < 400:
        name = f"{rng.choice(FIRST)}.{rng.choice(LAST)}"
        names += [name] if name not in names else []
    topics = {
        "design": "colour layout type icons sketch brand", "engineering": "kernel build test cache merge deploy",
        "sales": "quota lead client contract price region", "support": "ticket refund reply manual queue reset",
    }  # fmt: skip
    common = [
        "team",
        "week",
        "plan",
        "meeting",
        "note",
        "office",
        "review",
        "budget",
        "coffee",
        "train",
    ]
    rows: list[list[object]] = []
    for i, label in enumerate(labels):
        own = topics[teams[label]].split()
        words = [
            str(rng.choice(own if rng.random() < 0.25 else common))
            for _ in range(rng.integers(5, 12))
        ]
        age = int(np.clip(rng.normal(38 + 3 * label, 8), 20, 65))
        years = max(0.0, round(float(rng.normal(6 - label, 3)), 1))
        city = cities[label] if rng.random() < 0.4 else str(rng.choice(cities))
        remote = "yes" if rng.random() < (0.7 if label == 1 else 0.3) else "no"
        cells: list[object] = [
            names[i],
            age if rng.random() > 0.03 else "",
            years,
            city if rng.random() > 0.02 else "",
            remote,
        ]
        rows.append([*cells, " ".join(words), teams[label] if rng.random() < 0.3 else ""])
    write("people.csv", ["id", "age", "years", "city", "remote", "about", "team"], rows)
    pairs = planted(rng, labels, 1400, 0.75)
    links: list[list[object]] = [[names[a], names[b], int(rng.geometric(0.15))] for a, b in pairs]
    write("links.csv", ["source", "target", "messages"], links)
    # The same people a month later: ten newcomers, who know somebody already, and no column of teams.
    for k in range(10):
        label = int(rng.integers(4))
        own = topics[teams[label]].split()
        words = [str(rng.choice(own if rng.random() < 0.25 else common)) for _ in range(8)]
        rows.append(
            [
                f"newcomer{k}",
                int(rng.integers(20, 40)),
                0.0,
                cities[label],
                "no",
                " ".join(words),
                "",
            ]
        )
        for friend in rng.choice(np.flatnonzero(labels == label), 3, replace=False):
            links.append([f"newcomer{k}", names[friend], int(rng.geometric(0.15))])
    write(
        "newcomers.csv",
        ["id", "age", "years", "city", "remote", "about"],
        [row[:-1] for row in rows],
    )
    write("newcomers-links.csv", ["source", "target", "messages"], links)


def accounts() -> None:
    """600 accounts, one in twenty a fraud: semicolons, decimal commas, a byte-order mark, a rare class."""
    rng = np.random.default_rng(2)
    fraud = (rng.random(600) < 0.06).astype(int)
    rows: list[list[object]] = []
    for i, label in enumerate(fraud):
        amount = float(rng.lognormal(3.5 + 0.9 * label, 0.8))
        country = str(
            rng.choice(
                ["AT", "DE", "FR", "IT"],
                p=[0.4, 0.3, 0.2, 0.1] if not label else [0.1, 0.2, 0.2, 0.5],
            )
        )
        known = rng.random() < 0.5
        day = np.datetime64("2023-01-01") + np.timedelta64(
            int(rng.integers(0, 700) + 100 * label), "D"
        )
        rows.append(
            [
                f"A{i:04d}",
                f"{amount:.2f}".replace(".", ","),
                country,
                day,
                ("fraud" if label else "ok") if known else "",
            ]
        )
    write(
        "accounts.csv", ["account", "amount", "country", "opened", "status"], rows, ";", "utf-8-sig"
    )
    pairs = planted(rng, fraud, 1500, 0.6)
    write(
        "transfers.csv",
        ["from", "to", "total"],
        [
            [f"A{a:04d}", f"A{b:04d}", f"{rng.lognormal(4, 1):.2f}".replace(".", ",")]
            for a, b in pairs
        ],
        ";",
    )


def genes() -> None:
    """A network without any column but the labels of some nodes: its edges are all there is to go by."""
    rng = np.random.default_rng(3)
    labels = np.repeat([0, 1, 2], 80)
    names = [f"G{rng.integers(10**5, 10**6)}x{i}" for i in range(240)]
    pairs = planted(rng, labels, 900, 0.8)
    (HERE / "interactions.txt").write_text(
        "# who interacts with whom\n" + "".join(f"{names[a]} {names[b]}\n" for a, b in pairs)
    )
    known = set(rng.permutation(240)[:90].tolist())
    write(
        "functions.csv",
        ["gene", "function"],
        [
            [names[i], ["repair", "signal", "transport"][labels[i]] if i in known else ""]
            for i in range(240)
        ],
    )


def papers() -> None:
    """300 papers with titles and a split column, as Parquet and JSON lines."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(4)
    fields = {
        "vision": "image pixel camera scene depth",
        "language": "word sentence parser token grammar",
        "robotics": "arm motor grasp path joint",
    }
    labels = rng.choice(3, 300)
    order = rng.permutation(300)
    part = np.array(["train"] * 60 + ["val"] * 60 + ["test"] * 120 + [""] * 60)[np.argsort(order)]
    titles = []
    for label in labels:
        own, common = (
            list(fields.values())[label].split(),
            ["fast", "deep", "model", "learning", "method", "study", "data", "new"],
        )
        titles.append(
            " ".join(str(rng.choice(own if rng.random() < 0.3 else common)) for _ in range(7))
        )
    table = {
        "paper": [int(10_000 + 7 * i) for i in range(300)], "year": [int(y) for y in rng.integers(2005, 2024, 300)], "title": titles,
        "field": [list(fields)[label] if part[i] else None for i, label in enumerate(labels)], "split": [p or None for p in part.tolist()],
    }  # fmt: skip
    pyarrow.parquet.write_table(pa.table(table), HERE / "papers.parquet")
    pairs = planted(rng, labels, 900, 0.8)
    lines = (
        json.dumps({"citing": table["paper"][a], "cited": table["paper"][b]}) for a, b in pairs
    )
    (HERE / "citations.jsonl").write_text("\n".join(lines) + "\n")


def club() -> None:
    """A club that falls into two, as GraphML: few nodes, fewer labels."""
    import networkx as nx

    rng = np.random.default_rng(5)
    labels = np.repeat([0, 1], [26, 24])
    graph = nx.Graph()
    for i, label in enumerate(labels):
        known = {"side": ["north", "south"][label]} if i % 2 == 0 else {}
        graph.add_node(
            f"member {i}",
            joined=int(rng.integers(1990, 2020)) + 5 * int(label),
            plays=bool(rng.random() < 0.3 + 0.4 * label),
            **known,
        )
    for a, b in planted(rng, labels, 150, 0.85):
        graph.add_edge(f"member {a}", f"member {b}", weight=float(rng.integers(1, 6)))
    nx.write_graphml(graph, HERE / "club.graphml")


def customers() -> None:
    """500 customers as a German shop system writes them: Windows-1252, decimal commas, dates with the day first, rows twice."""
    rng = np.random.default_rng(6)
    segments = ["Gewerbe", "Haushalt", "Verein"]
    cities = ["Köln", "München", "Düsseldorf", "Nürnberg"]
    topics = ["Garten", "Küche", "Büro", "Sport", "Bücher"]
    labels = rng.choice(3, 500, p=[0.3, 0.5, 0.2])
    rows: list[list[object]] = []
    for i, label in enumerate(labels):
        day = np.datetime64("2015-01-01") + np.timedelta64(int(rng.integers(0, 2500)), "D")
        year, month, date = str(day).split("-")
        sales = f"{float(rng.lognormal(6 + 0.5 * label, 1)):,.2f}"
        interests = rng.choice(topics, int(rng.integers(1, 4)), replace=False)
        if rng.random() < 0.5:
            interests[0] = topics[label]
        rows.append(
            [
                f"{rng.choice(FIRST)} {rng.choice(LAST)}".title(),
                f"K-{10_000 + 7 * i}",
                str(rng.choice(cities)) if rng.random() > 0.05 else "k. A.",
                f"{date}.{month}.{year}",
                sales.replace(",", " ").replace(".", ",").replace(" ", ".") + " €",
                "|".join(sorted(set(map(str, interests)))),
                "ja" if rng.random() < 0.3 + 0.2 * label else "nein",
                segments[label] if rng.random() < 0.4 else "",
            ]
        )
    heads = [
        "Name",
        "Kundennr",
        "Ort",
        "Kunde seit",
        "Umsatz",
        "Interessen",
        "Newsletter",
        "Segment",
    ]
    write("kunden.csv", heads, [*rows, *rows[:3]], ";", "cp1252")
    pairs = planted(rng, labels, 1500, 0.75)
    links = [[rows[a][1], rows[b][1]] for a, b in pairs]
    write("empfehlungen.csv", ["von", "an"], links, ";", "cp1252")


def films() -> None:
    """300 films as neo4j-admin imports them: headings with types, and lists separated by semicolons."""
    rng = np.random.default_rng(7)
    labels = rng.choice(2, 300)
    genres = [["drama", "war", "romance"], ["comedy", "family", "music"]]
    rows: list[list[object]] = []
    for i, label in enumerate(labels):
        own = [
            genres[label if rng.random() < 0.65 else 1 - label][int(rng.integers(3))]
            for _ in range(2)
        ]
        rated = ["adults", "everyone"][label] if rng.random() < 0.4 else ""
        rows.append(
            [
                f"tt{i:05d}",
                f"Film {i}",
                int(rng.integers(1950, 2020)),
                ";".join(sorted(set(own))),
                rated,
                "Film",
            ]
        )
    heads = ["filmId:ID", "title", "year:int", "genres:string[]", "rated", ":LABEL"]
    write("films.csv", heads, rows)
    pairs = planted(rng, labels, 1100, 0.8)
    links = [[rows[a][0], "SEEN_WITH", rows[b][0]] for a, b in pairs]
    write("seen-with.csv", [":START_ID", ":TYPE", ":END_ID"], links)


def airports() -> None:
    """200 airports as Gephi's data laboratory exports them: a label that is a name, layout and colors."""
    rng = np.random.default_rng(8)
    labels = np.repeat([0, 1], 100)
    rows: list[list[object]] = []
    for i, label in enumerate(labels):
        x, y = rng.normal(0, 100, 2)
        kind = ["hub", "regional"][label] if rng.random() < 0.4 else ""
        gates = int(rng.integers(2, 40)) + 15 * (1 - int(label))
        place = f"{str(rng.choice(LAST)).title()} {i}"
        rows.append([i, place, "", f"{x:.3f}", f"{y:.3f}", 10.0, 90, 140, 200, gates, kind])
    heads = ["Id", "Label", "timeset", "x", "y", "size", "r", "g", "b", "gates", "kind"]
    write("airports.csv", heads, rows)
    pairs = planted(rng, labels, 800, 0.8)
    links = [[int(a), int(b), "Undirected", e, "", 1.0] for e, (a, b) in enumerate(pairs)]
    write("flights.csv", ["Source", "Target", "Type", "Id", "Label", "Weight"], links)


def companies() -> None:
    """250 companies and who supplies whom: two sheets of one workbook, with a title above the table."""
    import datetime

    import openpyxl

    rng = np.random.default_rng(9)
    labels = rng.choice(2, 250)
    book = openpyxl.Workbook()
    nodes = book.active
    nodes.title = "nodes"
    nodes.append(["Suppliers, as of June"])
    nodes.append(["company", "founded", "revenue", "country", "risk"])
    for i, label in enumerate(labels):
        founded = datetime.datetime(1990, 1, 1) + datetime.timedelta(
            days=int(rng.integers(0, 9000))
        )
        revenue = round(float(rng.lognormal(3 + 0.7 * label, 1)), 2)
        country = str(rng.choice(["AT", "CZ", "PL"]))
        known = ["high", "low"][label] if rng.random() < 0.45 else None
        nodes.append([f"C{i:03d}", founded, revenue, country, known])
    edges = book.create_sheet("edges")
    edges.append(["from", "to"])
    for a, b in planted(rng, labels, 900, 0.8):
        edges.append([f"C{a:03d}", f"C{b:03d}"])
    book.save(HERE / "companies.xlsx")


def staff() -> None:
    """360 staff with the date that they joined, and two types of link: work together, and live near each other."""
    rng = np.random.default_rng(10)
    units = ["finance", "labs", "sales"]
    labels = rng.choice(3, 360)
    joined = np.sort(rng.integers(0, 5000, 360))
    rows: list[list[object]] = []
    for i, label in enumerate(labels):
        day = np.datetime64("2010-01-01") + int(joined[i])
        desk = round(float(rng.normal(2 + 0.5 * label, 1)), 2)
        rows.append([f"S{i:03d}", day, desk, units[label] if rng.random() < 0.6 else ""])
    write("staff.csv", ["staff", "joined", "desk", "unit"], rows)
    pairs = [(a, b, "works with") for a, b in planted(rng, labels, 700, 0.9)]
    pairs += [(a, b, "lives near") for a, b in planted(rng, labels, 1400, 0.0)]
    links: list[list[object]] = [[f"S{a:03d}", f"S{b:03d}", kind] for a, b, kind in pairs]
    write("contacts.csv", ["from", "to", "kind"], [links[i] for i in rng.permutation(len(links))])


if __name__ == "__main__":
    for make in (
        people, accounts, genes, papers, club, customers, films, airports, companies, staff,
    ):  # fmt: skip
        make()
