// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package parameters_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/infrastructure/parameters"
)

// Parameters are refused by the texts that conditions and webhooks have.
func Example() {
	schema, err := parameters.Compile([]byte(`{"type": "object", "properties": {"size": {"type": "string", "enum": ["small"]}}}`))
	if err != nil {
		panic(err)
	}
	at := field.NewPath("spec", "parameters")
	fmt.Println(schema.Validate(context.Background(), at, []byte(`{"size": "huge"}`)).ToAggregate())
	// Output: spec.parameters.size: Unsupported value: "huge": supported values: "small"
}
