"""The first tab: choose files, see what was understood, repair it, train."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from nicegui import ui

from everynode.app.graph_view import node_columns
from everynode.app.parts import facts
from everynode.app.project import Source
from everynode.app.repairs import EDGE_CHOICES, NODE_CHOICES, repairs, with_role

if TYPE_CHECKING:
    from everynode.app.page import Page

#: How long each effort takes, roughly.
EFFORTS = {"quick": "quick: seconds", "standard": "standard: minutes", "best": "best: longer"}
#: More columns than this have no menu of roles each.
MENUS = 80


class DataTab:
    """The files and the roles of their columns.

    Parameters
    ----------
    page : Page
        The page.

    Attributes
    ----------
    page : Page
        The page.
    effort : str
        The chosen effort.
    """

    def __init__(self, page: Page):
        self.page = page
        self.effort = "quick"
        self._box: Any = None
        self._key: Any = None

    def draw(self) -> None:
        """Draw the tab."""
        self._box, self._key = ui.element("div").classes("screen"), None

    def refresh(self) -> None:
        """Draw the contents again if the files or what was read from them changed."""
        work = self.page.work
        key = (
            work.reading, work.error, id(work.view), work.trainer.running, work.project.source,
            len(work.project.answers.labels), len(work.rounds),
        )  # fmt: skip
        if self._box is None or key == self._key:
            return
        self._key = key
        self._box.clear()
        with self._box:
            source = work.project.source
            if work.reading:
                with ui.element("div").classes("row"):
                    ui.spinner()
                    ui.label("Reading the files")
            elif source.nodes is None and source.edges is None:
                self._choose()
            else:
                self._understood()

    # ------------------------------------------------------------------ files

    def _choose(self) -> None:
        """Draw the choice of files: from this folder, or uploaded."""
        work = self.page.work
        ui.label("Which graph?").classes("title")
        ui.label(
            "A table of nodes with an id, a label where you know it, and any other columns; a "
            "table of edges with two columns of ids. CSV, Parquet, JSON lines, Excel or GraphML."
        ).classes("quiet")
        uploaded = sorted((work.project.folder / "files").glob("*"))
        options = {str(path): path.name for path in [*uploaded, *work.files]}
        with ui.element("div").classes("card"):
            with ui.element("div").classes("drop"):
                ui.upload(
                    label="Upload files from this computer", multiple=True, auto_upload=True,
                    on_multi_upload=self._uploaded,
                ).props("flat")  # fmt: skip
            with ui.element("div").classes("row"):
                nodes = ui.select({"": "none", **options}, label="Nodes", value="")
                edges = ui.select({"": "none", **options}, label="Edges", value="")
            guess = [path for path in options if "node" in options[path].lower()]
            links = [path for path in options if _looks_like_edges(options[path])]
            nodes.value = guess[0] if guess else ""
            edges.value = links[0] if links else ""
            for select, name in ((nodes, "nodes"), (edges, "edges")):
                select.props("outlined dense").classes("grow").props(f"data-do=choose-{name}")

            async def read() -> None:
                source = Source(nodes.value or None, edges.value or None)
                await self.page.run(lambda: self.page.work.read(source))

            ui.button("Read these files", on_click=read, color=None).classes("main").props(
                "data-do=read"
            )

    async def _uploaded(self, event: Any) -> None:
        for file in event.files:  # all at once: a new picture of the page would stop the others
            await file.save(self.page.work.project.upload_path(file.name))
        self._key = None
        self.refresh()

    # ------------------------------------------------------------------ what was understood

    def _understood(self) -> None:
        work = self.page.work
        source, view = work.project.source, work.view
        summary = view.graph.summary if view else None
        ui.label("What was understood" if view else "These files cannot be read yet").classes(
            "title"
        )
        offers = repairs(source, summary, work.error)
        warnings = [work.error] if work.error else [note.text for note in summary.warnings]  # type: ignore[union-attr]
        with ui.element("div").classes("card"):
            for text in warnings:
                ui.label(text).classes("problem").props("data-do=problem")
            if view and not view.classes and not work.classes:
                ui.label(
                    "No column has labels. Choose one below, or label nodes in the tab Map."
                ).classes("problem")
            if offers:
                with ui.element("div").classes("row"):
                    for text, changed in offers:
                        self._button(text, changed)
            if view is None:
                self._other_files()
            elif not warnings:
                ui.label("Nothing looks wrong.").classes("quiet")
        if view is not None:
            self._train()
        self._roles()
        if view is not None:
            with ui.element("div").classes("card"):
                ui.label("How the files were read").classes("over")
                rows = view.summary_rows()
                facts([row for row in rows if row[0] not in ("warning",)])

    def _other_files(self) -> None:
        """Offer to choose other files."""

        async def forget() -> None:
            self.page.work.project.save(Source())
            self.page.work.error = ""
            self.page.look(force=True)

        ui.button("Choose other files", on_click=forget, color=None).props("flat").classes("plain")

    def _button(self, text: str, changed: Source) -> None:
        async def repair() -> None:
            await self.page.run(lambda: self.page.work.read(changed))

        ui.button(text, on_click=repair, color=None).props("flat").classes("plain").props(
            "data-do=repair"
        )

    def _train(self) -> None:
        """Draw the button that trains."""
        work = self.page.work
        known = sum(label >= 0 for label in work.labels())
        view = work.view
        assert view is not None
        with ui.element("div").classes("card row"):
            with ui.element("div").classes("grow"):
                ui.label(
                    f"{view.num_nodes:,} nodes, {view.graph.num_edges:,} edges, {known:,} labels"
                ).style("font-weight: 650")
                ui.label(
                    "Train to see every node's class on the map."
                    if known
                    else "Label at least two classes on the map before the first training."
                ).classes("quiet small")
            effort = ui.select(EFFORTS, value=self.effort, label="Effort")
            effort.props("outlined dense").style("width: 12rem")
            effort.on_value_change(lambda event: setattr(self, "effort", event.value))

            async def train() -> None:
                await self.page.run(lambda: work.train(self.effort))

            button = (
                ui.button("Train", on_click=train, color=None)
                .classes("main")
                .props("data-do=train")
            )
            button.set_enabled(len(set(work.labels()) - {-1}) > 1 and not work.trainer.running)

    def _roles(self) -> None:
        """Draw a menu of roles for every column."""
        work = self.page.work
        view, source = work.view, work.project.source
        roles = {}
        if view is not None and view.graph.summary is not None:
            inner = node_columns(view.graph.summary)
            roles = {column.name: column.kind for column in inner}
            edges = view.graph.summary.columns[len(inner) :]
            roles |= {f"edges:{column.name}": column.kind for column in edges}
        for name, title, choices in (
            ("nodes", "Columns of the nodes", NODE_CHOICES),
            ("edges", "Columns of the edges", EDGE_CHOICES),
        ):
            columns = work.tables[name][:MENUS]
            if not columns:
                continue
            with ui.element("div").classes("card"):
                ui.label(title).classes("over")
                with ui.element("div").classes("roles"):
                    for column in columns:
                        is_edge = name == "edges"
                        kind = roles.get(f"edges:{column}" if is_edge else column, "")
                        self._menu(column, _role(source, column, kind, is_edge), choices, is_edge)

    def _menu(self, column: str, role: str, choices: tuple[str, ...], edges: bool) -> None:
        work = self.page.work

        async def change(event: Any) -> None:
            changed = with_role(work.project.source, column, event.value, edges=edges)
            await self.page.run(lambda: work.read(replace(changed)))

        with ui.element("div").classes("role"):
            ui.label(column)
            menu = ui.select(list(choices), value=role, on_change=change)
            menu.props("outlined dense options-dense aria-label='role'")


def _looks_like_edges(name: str) -> bool:
    return any(word in name.lower() for word in ("edge", "link", "relation"))


def _role(source: Source, column: str, kind: str, edges: bool) -> str:
    """Return the role of a column as its menu calls it."""
    if edges:
        return kind if kind in EDGE_CHOICES else "not used"
    if kind in ("id", "label", "split"):
        return kind
    if column == source.display:
        return "name"
    return "left out" if kind in ("not used", "ignored") else "feature"
