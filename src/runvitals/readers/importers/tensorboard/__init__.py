"""Imports TensorBoard's event files, without TensorBoard or TensorFlow."""
