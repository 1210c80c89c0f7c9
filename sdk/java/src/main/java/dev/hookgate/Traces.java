// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import io.grpc.Metadata;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.TextMapGetter;

/** The caller's trace, if the application has OpenTelemetry. */
final class Traces {
  private static final boolean PRESENT = isPresent();

  /** A call whose trace is the current one of this thread. */
  interface Entered extends AutoCloseable {
    @Override
    void close();
  }

  /** Reports whether there is OpenTelemetry 1.57 or later. With earlier ones, looking would prevent a later setup. */
  private static boolean isPresent() {
    try {
      Class.forName("io.opentelemetry.api.GlobalOpenTelemetry").getMethod("getOrNoop");
      return true;
    } catch (ReflectiveOperationException e) {
      return false;
    }
  }

  /** Makes the trace of a call the current one, until it is closed. */
  static Entered enter(Metadata headers) {
    return PRESENT ? Api.enter(headers) : () -> {};
  }

  /** What is loaded with OpenTelemetry only. */
  private static final class Api {
    private static final TextMapGetter<Metadata> GETTER = new TextMapGetter<>() {
      @Override
      public Iterable<String> keys(Metadata headers) {
        return headers.keys();
      }

      @Override
      public String get(Metadata headers, String key) {
        return headers.get(Metadata.Key.of(key, Metadata.ASCII_STRING_MARSHALLER));
      }
    };

    static Entered enter(Metadata headers) {
      if (Span.current().getSpanContext().isValid()) {
        return () -> {}; // an agent has made a span of its own
      }
      Scope scope = GlobalOpenTelemetry.getOrNoop().getPropagators().getTextMapPropagator()
          .extract(Context.current(), headers, GETTER).makeCurrent();
      return scope::close;
    }
  }

  private Traces() {}
}
