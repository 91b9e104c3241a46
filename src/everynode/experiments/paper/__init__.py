"""The paper's tables and figures, one small file each."""
