// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hello;

import dev.hookgate.*;
import dev.hookgate.hooks.v1alpha1.*;

public final class Main {
  static Extension extension() {
    return new Extension().handle(BeforeClusterCreateRequest.class, "hello", request -> Answer.done());
  }

  public static void main(String[] args) throws Exception {
    new Server(extension()).address(args[0]).serve();
  }
}
