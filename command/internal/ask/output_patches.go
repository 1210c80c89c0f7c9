// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"bytes"
	"encoding/base64"
	"encoding/json"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// decodedPatch is the member that --decode-patches writes in place of patch, whose base64 the contract mandates.
const decodedPatch = "decodedPatch"

// addDecodePatches adds --decode-patches.
func addDecodePatches(f *pflag.FlagSet, decode *bool) {
	f.BoolVar(decode, "decode-patches", false,
		"with -o json or -o yaml, print each patch as JSON in the member "+decodedPatch+", not as base64 in the "+
			"member patch")
}

// checkDecodePatches returns an error unless a format has patches to decode.
func checkDecodePatches(decode bool, format string) error {
	if decode && format == cmdline.FormatTable {
		return cmdline.Usagef("--decode-patches is for -o json and -o yaml: the table always shows decoded patches")
	}
	return nil
}

// decodePatches returns an answer of the hook with its patches decoded. What is no base64 of JSON stays as it is.
func decodePatches(h *catalog.Hook, answer []byte) ([]byte, error) {
	return withDecodedPatches(h.Response.Descriptor(), answer)
}

// decodeExplained decodes the patches of all answers of an explanation.
func decodeExplained(h *catalog.Hook, x *gateway.Explanation) (err error) {
	answers := []*gateway.ExplainedAnswer{x.Answer}
	for i := range x.Handlers {
		for j := range x.Handlers[i].Steps {
			answers = append(answers, x.Handlers[i].Steps[j].Answer)
		}
	}
	for _, a := range answers {
		if a == nil || len(a.Response) == 0 {
			continue
		}
		if a.Response, err = decodePatches(h, a.Response); err != nil {
			return err
		}
	}
	return nil
}

// withDecodedPatches returns the JSON of a message with the patches of all messages in it decoded.
func withDecodedPatches(m protoreflect.MessageDescriptor, raw json.RawMessage) (json.RawMessage, error) {
	fields := m.Fields()
	isPatch := fields.ByName("patch_type") != nil
	return eachMember(raw, func(name string, value json.RawMessage) (string, json.RawMessage, error) {
		fd := fields.ByJSONName(name)
		switch {
		case isPatch && name == "patch":
			if patch, ok := jsonIn(value); ok {
				return decodedPatch, patch, nil
			}
		case fd == nil || fd.Kind() != protoreflect.MessageKind || fd.IsMap():
		case !fd.IsList():
			decoded, err := withDecodedPatches(fd.Message(), value)
			return name, decoded, err
		default:
			decoded, err := eachElement(value, func(element json.RawMessage) (json.RawMessage, error) {
				return withDecodedPatches(fd.Message(), element)
			})
			return name, decoded, err
		}
		return name, value, nil
	})
}

// jsonIn returns the JSON that a string has in base64.
func jsonIn(raw json.RawMessage) (json.RawMessage, bool) {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil, false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return data, err == nil && json.Valid(data)
}

// eachMember returns an object with its members changed, in their order; what is no object stays as it is.
func eachMember(
	raw json.RawMessage, change func(name string, value json.RawMessage) (string, json.RawMessage, error),
) (json.RawMessage, error) {
	return rewritten(raw, '{', func(d *json.Decoder, b *bytes.Buffer) error {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		name, _ := key.(string)
		if name, value, err = change(name, value); err != nil {
			return err
		}
		quoted, err := json.Marshal(name)
		b.Write(append(quoted, ':'))
		b.Write(value)
		return err
	})
}

// eachElement returns a list with its elements changed; what is no list stays as it is.
func eachElement(
	raw json.RawMessage, change func(json.RawMessage) (json.RawMessage, error),
) (json.RawMessage, error) {
	return rewritten(raw, '[', func(d *json.Decoder, b *bytes.Buffer) error {
		var element json.RawMessage
		if err := d.Decode(&element); err != nil {
			return err
		}
		element, err := change(element)
		b.Write(element)
		return err
	})
}

// rewritten returns a value that begins with open, with each of its parts as next writes it.
func rewritten(
	raw json.RawMessage, open json.Delim, next func(*json.Decoder, *bytes.Buffer) error,
) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, err := d.Token(); err != nil || first != open {
		return raw, err
	}
	var b bytes.Buffer
	b.WriteByte(byte(open))
	for n := 0; d.More(); n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		if err := next(d, &b); err != nil {
			return nil, err
		}
	}
	b.WriteByte(byte(open) + 2) // its counterpart in ASCII
	return b.Bytes(), nil
}
