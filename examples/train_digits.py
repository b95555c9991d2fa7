"""Train a small network on handwritten digits, monitored by runvitals. Takes half a minute on two cores.

    python examples/train_digits.py
    python examples/train_digits.py --epochs 500 --workers 4 --seconds 60

It resembles larger trainings: worker processes read and distort images, the main process computes, and
checkpoints are written. The lines that use runvitals are numbered.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from multiprocessing.queues import Queue

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import affine_transform
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import runvitals  # 1

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
Batch = tuple[Floats, Labels]

SIDE = 24  # pixels; the images of 8 × 8 pixels are enlarged
BATCH = 64
STEPS = 50  # batches per epoch


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small network on handwritten digits.")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--workers", type=int, default=2, help="processes that prepare batches")
    parser.add_argument("--seconds", type=float, default=300, help="stop after this time")
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--checkpoint", default="digits.npz", help="file for the network")
    options = parser.parse_args()

    with runvitals.init(project="digits", config=vars(options)) as run:  # 2
        until = time.monotonic() + options.seconds
        images, labels = load_digits(return_X_y=True)
        train_x, test_x, train_y, test_y = train_test_split(
            images / 16, labels, test_size=0.2, random_state=0
        )
        test_x = distort(test_x.reshape(-1, 8, 8), None)
        network = Network(SIDE * SIDE, 128, 10)
        batches = start_workers(options.workers, train_x.reshape(-1, 8, 8), train_y)
        for epoch in range(options.epochs):
            losses = [network.train(*batches.get(timeout=60), options.learning_rate) for _ in range(STEPS)]
            loss, accuracy = np.mean(losses), np.mean(network.predict(test_x) == test_y)
            run.log({"loss": loss, "accuracy": accuracy, "epoch": epoch}, step=network.steps)  # 3
            print(f"epoch {epoch:3}  loss {loss:.4f}  accuracy {accuracy:.4f}", flush=True)
            if epoch % 10 == 9:
                network.save(options.checkpoint)
            if time.monotonic() > until:
                break


def start_workers(count: int, images: Floats, labels: Labels) -> Queue[Batch]:
    """Start processes that put batches of distorted images into a queue until this process ends."""
    context = multiprocessing.get_context("spawn")
    batches: Queue[Batch] = context.Queue(maxsize=2 * count)
    for seed in range(count):
        context.Process(target=prepare, args=(seed, images, labels, batches), daemon=True).start()
    return batches


def prepare(seed: int, images: Floats, labels: Labels, batches: Queue[Batch]) -> None:
    numbers = np.random.default_rng(seed)
    while True:
        chosen = numbers.integers(len(images), size=BATCH)
        batches.put((distort(images[chosen], numbers), labels[chosen]))


def distort(images: Floats, numbers: np.random.Generator | None) -> Floats:
    """Enlarge images of 8 × 8 pixels to rows of 576; with random numbers, rotate, scale and shift them."""
    rows = np.empty((len(images), SIDE * SIDE))
    for row, image in zip(rows, images, strict=True):
        angle, stretch, shift = 0.0, 1.0, np.zeros(2)
        if numbers is not None:
            angle, stretch, shift = (
                numbers.normal(0, 0.15),
                numbers.normal(1, 0.08),
                numbers.normal(0, 0.4, 2),
            )
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        matrix = turn * stretch * 8 / SIDE
        offset = 3.5 - matrix @ np.full(2, (SIDE - 1) / 2) + shift
        row[:] = affine_transform(image, matrix, offset, (SIDE, SIDE), order=1).ravel()
    return rows


class Network:
    """One hidden layer, trained with Adam (Kingma and Ba, 2015)."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        numbers = np.random.default_rng(0)
        self.parameters = [
            numbers.normal(0, np.sqrt(2 / inputs), (inputs, hidden)),
            np.zeros(hidden),
            numbers.normal(0, np.sqrt(2 / hidden), (hidden, classes)),
            np.zeros(classes),
        ]
        self.means = [np.zeros_like(p) for p in self.parameters]
        self.squares = [np.zeros_like(p) for p in self.parameters]
        self.steps = 0

    def forward(self, x: Floats) -> tuple[Floats, Floats]:
        """(activations of the hidden layer, class probabilities)."""
        w1, b1, w2, b2 = self.parameters
        hidden = np.maximum(x @ w1 + b1, 0)
        scores = hidden @ w2 + b2
        exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
        return hidden, exponentials / exponentials.sum(axis=1, keepdims=True)

    def predict(self, x: Floats) -> Labels:
        classes: Labels = np.argmax(self.forward(x)[1], axis=1)
        return classes

    def train(self, x: Floats, y: Labels, learning_rate: float) -> float:
        """Train on one batch; returns its cross-entropy before the step."""
        hidden, probabilities = self.forward(x)
        right = np.arange(len(y)), y
        loss = float(-np.log(probabilities[right]).mean())
        by_scores = probabilities
        by_scores[right] -= 1
        by_scores /= len(y)
        by_hidden = by_scores @ self.parameters[2].T * (hidden > 0)
        self.adam(
            [x.T @ by_hidden, by_hidden.sum(axis=0), hidden.T @ by_scores, by_scores.sum(axis=0)],
            learning_rate,
        )
        return loss

    def adam(self, gradients: list[Floats], learning_rate: float) -> None:
        self.steps += 1
        for parameter, gradient, mean, square in zip(
            self.parameters, gradients, self.means, self.squares, strict=True
        ):
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            unbiased = mean / (1 - 0.9**self.steps), square / (1 - 0.999**self.steps)
            parameter -= learning_rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)

    def save(self, path: str) -> None:
        """Write the parameters and the optimiser's state atomically."""
        with open(path + ".part", "wb") as file:
            np.savez(file, *self.parameters, *self.means, *self.squares)
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)


if __name__ == "__main__":
    main()
