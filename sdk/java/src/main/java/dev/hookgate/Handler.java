// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.google.protobuf.Message;

/**
 * Answers the calls of one hook, on several threads at once.
 *
 * @param <Q> the request of the hook
 */
@FunctionalInterface
public interface Handler<Q extends Message> {
  /**
   * Returns the answer to a request. A {@link Failure} is answered with its message, and a gRPC status exception with
   * its status. Any other exception is logged, and answered as a Failure without its text.
   */
  Answer handle(Q request) throws Exception;
}
