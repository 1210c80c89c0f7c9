// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dev.hookgate;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.cfg.JsonNodeFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.protobuf.ByteString;
import io.grpc.Status;
import java.io.IOException;

/** JSON as it is in requests: numbers keep their digits, and nothing may follow a value. */
final class Json {
  /** Raises Jackson's default limit of 20,000,000 characters in a string. */
  private static final JsonFactory FACTORY = JsonFactory.builder()
      .streamReadConstraints(StreamReadConstraints.builder().maxStringLength(Server.MESSAGE_LIMIT).build())
      .build();

  static final ObjectMapper MAPPER = JsonMapper.builder(FACTORY)
      .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
      .enable(DeserializationFeature.USE_BIG_DECIMAL_FOR_FLOATS)
      .disable(JsonNodeFeature.STRIP_TRAILING_BIGDECIMAL_ZEROES)
      .build();

  static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  static JsonNode valueOf(Object value) {
    return MAPPER.valueToTree(value);
  }

  /** Returns a value, or throws INVALID_ARGUMENT with the name of the member that has it. */
  static JsonNode read(String member, ByteString raw) {
    try {
      JsonNode node = MAPPER.readTree(raw.newInput());
      if (!node.isMissingNode()) {
        return node;
      }
      throw invalid(member, "there is none");
    } catch (IOException e) {
      throw invalid(member, e);
    }
  }

  /** Returns the text of a member of an object, or null if it has no such one, and decodes nothing else. */
  static String readMember(String member, ByteString raw, String name) {
    try (JsonParser parser = FACTORY.createParser(raw.newInput())) {
      if (parser.nextToken() != JsonToken.START_OBJECT) {
        throw invalid(member, parser.hasCurrentToken() ? "not a JSON object" : "there is none");
      }
      for (String key = parser.nextFieldName(); key != null; key = parser.nextFieldName()) {
        if (parser.nextToken() == JsonToken.VALUE_STRING && key.equals(name)) {
          return parser.getText();
        }
        parser.skipChildren();
      }
      return null;
    } catch (IOException e) {
      throw invalid(member, e);
    }
  }

  static ObjectNode readObject(String member, ByteString raw) {
    if (read(member, raw) instanceof ObjectNode object) {
      return object;
    }
    throw invalid(member, "not a JSON object");
  }

  static RuntimeException invalid(String member, String text) {
    return Status.INVALID_ARGUMENT.withDescription(member + ": " + text).asRuntimeException();
  }

  private static RuntimeException invalid(String member, IOException e) {
    return invalid(member, e instanceof JsonProcessingException json ? json.getOriginalMessage() : e.getMessage());
  }

  static String write(JsonNode node) {
    try {
      return MAPPER.writeValueAsString(node);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException(e); // a tree can always be written
    }
  }

  static ByteString encode(JsonNode node) {
    return ByteString.copyFromUtf8(write(node));
  }

  private Json() {}
}
