"""Draw docs/figures/architecture.svg and packages.svg: `python tools/make_diagrams.py`."""

from __future__ import annotations

from pathlib import Path

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
INK, SOFT = "#1a237e", "#5c6bc0"
FILLS = {"trunk": "#e8eaf6", "token": "#e0f2f1", "stage": "#fff3e0", "plain": "#f5f5f5"}
PACKAGES = (
    ("cli", "one file a command: parse, call, print"),
    ("serve", "the local web page and its HTTP API"),
    ("report", "tables, figures, pages"),
    ("training", "settings, presets, loss, loop, resume"),
    ("theory", "certificates and attacks on them"),
    ("evaluation", "scores, resolution, stability, cost, bands"),
    ("checkpoint | export", "the state of a run; programs for other runtimes"),
    ("models | data | metrics", "operators and stages; files to windows; scores"),
    ("nn | pde", "parts with weights; physics, one equation a file"),
    ("numerics", "formulas: no state, no files, no modules"),
    ("runs", "folder, lock, log, record"),
    ("storage", "folders that are complete or refused"),
    ("fields", "Grid, FieldSpec, OperatorSignature, Trajectories"),
    ("config", "typed settings to and from YAML"),
    ("errors", "what can go wrong"),
)


def text(x: float, y: float, words: str, *, size: int = 14, weight: str = "normal", anchor: str = "middle") -> str:
    """One line of text around a point."""
    words = words.replace("&", "&amp;").replace("<", "&lt;")
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="#212121">{words}</text>'
    )


def box(x: float, y: float, width: float, height: float, kind: str, *lines: str) -> str:
    """A rounded box with its title in bold and further lines below."""
    middle = y + height / 2 - 9 * (len(lines) - 1) + 5
    parts = [
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{FILLS[kind]}" stroke="{INK}"/>',
        *(
            text(
                x + width / 2, middle + 18 * row, line, size=14 if row == 0 else 12, weight="bold" if row == 0 else ""
            )
            for row, line in enumerate(lines)
        ),
    ]
    return "".join(parts).replace(' font-weight=""', "")


def arrow(*points: tuple[float, float]) -> str:
    """A line through points with a head at its end."""
    path = " ".join(f"{x},{y}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{SOFT}" stroke-width="2" marker-end="url(#head)"/>'


def page(width: int, height: int, title: str, *parts: str) -> str:
    """The whole drawing."""
    head = (
        '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="{SOFT}"/></marker></defs>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif"><title>{title}</title>{head}{"".join(parts)}</svg>\n'
    )


def architecture() -> str:
    """From the history of the field to its next frame."""
    return page(
        900,
        420,
        "SpectraKAN: spectral trunk, global token, modulation, readout, stages",
        box(10, 170, 110, 76, "plain", "u", "history,", "parameters"),
        box(150, 170, 100, 76, "stage", "units", "decay q^age"),
        box(290, 60, 190, 76, "trunk", "fine branch F", "gated axial spectral layers", "+ pointwise path"),
        box(290, 156, 190, 60, "trunk", "coarse branch", "U_s F_c(D_s u), optional"),
        box(290, 300, 90, 76, "token", "P(u)", "centre, mean,", "parameters"),
        box(400, 300, 110, 76, "token", "G-KAN", "learnable knots", "token t"),
        box(550, 300, 150, 76, "token", "GML", "softmax <Q t, K f>", "A = sum a V f"),
        box(550, 90, 110, 76, "trunk", "f", "features on", "the grid"),
        box(700, 170, 80, 76, "trunk", "R([f, A])", "pointwise", "readout"),
        box(800, 60, 92, 76, "stage", "b + G[r]", "filter,", "reference"),
        box(800, 270, 92, 60, "plain", "u_next", "physical units"),
        arrow((120, 208), (148, 208)),
        arrow((250, 200), (270, 200), (270, 98), (288, 98)),
        arrow((250, 208), (270, 208), (270, 186), (288, 186)),
        arrow((250, 216), (270, 216), (270, 338), (288, 338)),
        arrow((480, 98), (515, 98), (515, 120), (548, 120)),
        arrow((480, 186), (515, 186), (515, 140), (548, 140)),
        arrow((380, 338), (398, 338)),
        arrow((510, 338), (548, 338)),
        arrow((605, 166), (605, 298)),
        arrow((660, 128), (720, 128), (720, 168)),
        arrow((700, 338), (740, 338), (740, 248)),
        arrow((760, 168), (760, 98), (798, 98)),
        arrow((846, 136), (846, 268)),
        text(385, 40, "trunk (AMFNO)", size=13, weight="bold"),
        text(490, 400, "token and modulation", size=13, weight="bold"),
        text(846, 40, "stages", size=13, weight="bold"),
    )


def packages() -> str:
    """The order of the packages, top to bottom."""
    height, parts = 44, []
    for row, (name, content) in enumerate(PACKAGES):
        top = 12 + row * height
        fill = "trunk" if row < 7 else "token" if row < 10 else "plain"
        parts.append(box(40, top, 250, 34, fill, name))
        parts.append(text(310, top + 22, content, size=14, anchor="start"))
    bottom = 12 + len(PACKAGES) * height - 10
    parts += [arrow((20, 20), (20, bottom)), text(22, bottom + 18, "imports", size=12, anchor="start")]
    return page(700, bottom + 30, "Packages; imports only go down", *parts)


if __name__ == "__main__":
    FIGURES.mkdir(exist_ok=True)
    for name, drawing in (("architecture", architecture()), ("packages", packages())):
        (FIGURES / f"{name}.svg").write_text(drawing)
