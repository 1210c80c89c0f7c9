// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

/** Ends a handler with status Failure, which a person must resolve. */
public final class Failure extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Makes a Failure whose message says what is wrong. */
  public Failure(String message) {
    super(message, null, false, false);
  }
}
