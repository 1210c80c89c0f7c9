// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import "time"

// The limits of the kinds of infrastructure.hookgate.dev. All of them are part of an object that the API server takes
// only up to 1.5 MiB.
const (
	// ParameterBytes is the size of the parameters of an object as JSON. A user writes them by hand; user data for a
	// machine, the largest part in other providers, has 16 KiB.
	ParameterBytes = 64 << 10
	// ParameterSchemaBytes is the size of a schema of parameters. The status of an InfrastructureClass has three. The
	// schema of all fields of AWSMachine, without descriptions, has 15 KiB.
	ParameterSchemaBytes = 128 << 10
	// ParameterDepth and ParameterSchemaDepth are how deep parameters, and a schema of them, may be nested. A schema takes
	// two levels for each level of parameters.
	ParameterDepth       = 32
	ParameterSchemaDepth = 2*ParameterDepth + 2
	// Parameters is the number of values in the parameters of an object, nested ones too, and ParameterNameBytes the
	// length of the longest name of a member, for which a label of Kubernetes, which has 317 bytes, may stand. Together
	// they bound what a check costs: each value may have a problem, whose text names its place.
	Parameters         = 1000
	ParameterNameBytes = 320
	// ParameterEnumBytes is the size of the values of an enum, and ParameterPatternBytes that of a pattern. The text of a
	// problem has them.
	ParameterEnumBytes    = 4 << 10
	ParameterPatternBytes = 1 << 10
	// MachineCapacities is the number of capacities of machines that an extension announces, and MachineCapacityBytes
	// their size together as JSON. A private cloud has tens of sizes, and the largest region of a public one about 800,
	// of which one extension offers some.
	MachineCapacities    = 500
	MachineCapacityBytes = 256 << 10
	// ParameterProblems is the number of problems of parameters, or of a schema, that are reported, and
	// ParameterProblemBytes the size of the text of each. Together they fit into the message of a condition.
	ParameterProblems     = 10
	ParameterProblemBytes = 320
	// CredentialBytes is the size of the data of a Secret with credentials. It goes into each request, and a tenant may
	// have one for each HookgateCluster, of which 1,000 are kept. A kubeconfig with its certificates has 10 KiB.
	CredentialBytes = 64 << 10
	// OutputBytes is the size of the outputs of a HookgateCluster as JSON, which go into each request about its machines.
	OutputBytes = 16 << 10
)

// The limits of calls about infrastructure, and of what their answers have, as the schemas of the kinds have it.
const (
	// DefaultInfrastructureCalls is the number of calls in flight, and DefaultClassCalls that of one InfrastructureClass.
	// A connection to the gateway has 100 streams.
	DefaultInfrastructureCalls = 100
	DefaultClassCalls          = 50
	// InfrastructureTimeout bounds a call: the longest timeout of a handler, and what the gateway needs besides.
	InfrastructureTimeout = Timeout + 5*time.Second
	// LeastRecall and LongestRecall bound the time for which an extension may put off the next call, and LeastRetry and
	// LongestRetry the time between calls that fail.
	LeastRecall   = time.Second
	LongestRecall = time.Hour
	LeastRetry    = time.Second
	LongestRetry  = time.Minute
	// ParameterCost is what all rules of a schema may cost in one check, and ParameterRules the number of them.
	ParameterCost  = 100_000
	ParameterRules = 100
	// CapacityResources is the number of resources of a capacity.
	CapacityResources = 64
	// InstanceConditions, MachineAddresses, FailureDomains and Instances bound an answer. The status has room for four
	// conditions of the controllers besides.
	InstanceConditions = 28
	MachineAddresses   = 128
	FailureDomains     = 100
	Instances          = 10_000
	// ReportedInstances is the number of instances in the status of a pool, and PoolStep that of machines of a pool that
	// are made before its size is read again. Of the addresses of an instance, the status has InstanceAddresses.
	ReportedInstances = 1000
	InstanceAddresses = 16
	PoolStep          = 500
	// Credentials is the number of Secrets with credentials that are kept, each for CredentialAge.
	Credentials   = 1000
	CredentialAge = time.Minute
	// InfrastructureClasses is the number of classes that metrics tell apart. The objects of others are those of Other.
	InfrastructureClasses = 100
	// EventInterval is the time between two events of an object with the same reason.
	EventInterval = 10 * time.Minute
)
