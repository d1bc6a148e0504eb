"""Hugging Face folders: config.json, safetensors and tokenizer files, without torch."""

from engine.checkpoint.folder.reader import folder_files, open_folder, refuse_file

__all__ = ["folder_files", "open_folder", "refuse_file"]
