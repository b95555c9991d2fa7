"""Values of W&B's package that are logged as one of our kinds."""

from __future__ import annotations

import os
from typing import Any

from runvitals.monitoring.settings import wandb_arguments
from runvitals.sdk.media.base import Media
from runvitals.sdk.media.table import Table
from runvitals.sdk.media.values import FigureMedia, Image, Text

MOLECULES = ("pdb", "pqr", "mmcif", "mcif", "cif", "sdf", "sd", "gro", "mol2", "mmtf")
Plotly = FigureMedia
"""A figure of plotly, which may also be logged as it is."""


class Molecule(Text):
    """A molecule, recorded as the text of its file.

    Args:
        data: a path, or an open file.
        caption: a text to show below it.
        others: further arguments of W&B's class, which have no effect here.

    Raises:
        ValueError: the path does not end in the name of a format of molecules.
        OSError: it cannot be read.
    """

    def __init__(self, data: Any = ..., caption: str | None = None, **others: Any) -> None:
        data = wandb_arguments.data_of("Molecule", data, others)
        if isinstance(data, (str, os.PathLike)):
            ending = os.fspath(data).rpartition(".")[2].lower()
            if ending not in MOLECULES:
                raise ValueError(f"Molecule(): {os.fspath(data)}: expected one of .{', .'.join(MOLECULES)}")
            with open(data, encoding="utf-8", errors="replace") as file:
                text = file.read()
        else:
            text = data.read()
        super().__init__(text, caption)

    @staticmethod
    def from_rdkit(data_or_path: Any, caption: str | None = None, **others: Any) -> Media:
        """Return a picture of a molecule of RDKit, which must be installed."""
        from rdkit import Chem
        from rdkit.Chem import Draw

        path = isinstance(data_or_path, (str, os.PathLike))
        molecule = Chem.MolFromMolFile(os.fspath(data_or_path)) if path else data_or_path
        return Image(Draw.MolToImage(molecule), caption)

    @staticmethod
    def from_smiles(data: str, caption: str | None = None, **others: Any) -> Media:
        """Return a picture of the molecule of a SMILES text; RDKit must be installed.

        Raises:
            ValueError: the text is no molecule.
        """
        from rdkit import Chem

        molecule = Chem.MolFromSmiles(data)
        if molecule is None:
            raise ValueError(f"Molecule.from_smiles(): {data!r} is no molecule")
        return Molecule.from_rdkit(molecule, caption or data)


class JoinedTable(Table):
    """The rows of two tables that have the same value in a column.

    Args:
        table1, table2: the tables.
        join_key: the column, which both have.

    Raises:
        TypeError: not a `Table` of ours.
        ValueError: a table has no such column.
    """

    def __init__(self, table1: Any, table2: Any, join_key: str) -> None:
        for table in (table1, table2):
            if not isinstance(table, Table):
                raise TypeError(f"JoinedTable(): expected a runvitals.Table, not a {type(table).__name__}")
            if join_key not in table.columns:
                raise ValueError(f"JoinedTable(): no column {join_key!r} in {', '.join(table.columns)}")
        by_key: dict[Any, list[list[Any]]] = {}
        column = table2.columns.index(join_key)
        for row in table2.data:
            by_key.setdefault(row[column], []).append([value for i, value in enumerate(row) if i != column])
        others = [name for name in table2.columns if name != join_key]
        names = [f"{name}_2" if name in table1.columns else name for name in others]
        first = table1.columns.index(join_key)
        rows = [[*row, *more] for row in table1.data for more in by_key.get(row[first], ())]
        super().__init__(columns=[*table1.columns, *names], data=rows)
