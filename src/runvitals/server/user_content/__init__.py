"""Texts and uploads of users, made safe to show: Markdown, pictures, and images from elsewhere."""
