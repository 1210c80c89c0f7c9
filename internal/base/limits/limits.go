// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package limits holds what bounds calls, connections, files and objects: the constants, which the packages that
// enforce them name, and the table of them (table.go, rows.go), of which docs/limits.md is made. It imports no other
// package of the module.
package limits

import "time"

// The limits of a call.
const (
	// BodyBytes is the size of the largest request or answer on every transport, after decompression: 20 MiB, as
	// Cluster API's own server has it.
	BodyBytes = 20 << 20
	// SideMessageBytes is the size of the largest message over gRPC besides calls: of health and reflection. A server has
	// some ten services.
	SideMessageBytes = 256 << 10
	// Timeout is the longest timeout of a handler, and DefaultTimeout the timeout of a handler that states none. The
	// Runtime SDK defines both.
	Timeout        = 30 * time.Second
	DefaultTimeout = 10 * time.Second
	// JSONDepth is how deep objects and arrays may be nested in each other.
	JSONDepth = 1000
	// QuotedBytes is the size to which names and paths of a caller are cut in texts. Registered names have at most 317.
	QuotedBytes = 320
	// MessageBytes is the size to which the message of an extension's answer is cut, and MergedMessageBytes that of
	// several together, and the text of an error. Callers put them into conditions, which have room for 32 KiB.
	MessageBytes       = 8 << 10
	MergedMessageBytes = 16 << 10
	// LogTextBytes is the size to which each text in a line of the log is cut. The stack of a panic has less.
	LogTextBytes = 16 << 10
	// LogBytes is how much of the log is kept while what reads it has stopped: some thousand lines.
	LogBytes = 1 << 20
	// CachedBytes is the memory of the answers that are kept together. A Cluster with 100 machine deployments has answers
	// of about 100 KiB.
	CachedBytes = 32 << 20
	// GatewayHops is the number of gateways that a call may pass, one behind the other. A hub, a regional hub and a
	// sidecar are three. A call that comes back to a gateway is cut there; this limit is for replicas that do not know
	// each other.
	GatewayHops = 8
	// Elements is the number of elements of a request or an answer besides the Kubernetes objects in it: the elements of
	// lists such as items, variables and handlers, the entries of maps such as settings, and the members that the schema
	// does not know. GeneratePatches has the most: two items for each of the machine deployments of a Cluster, of which
	// the schema of Cluster allows 2,000, each with the variables that it overrides. A Cluster with 100 of them and 10
	// variables for each has 2,200 elements. An element takes up to 300 bytes of memory, even if the peer wrote {}.
	Elements = 100_000
	// ObjectElements is the number of elements of lists, entries of maps and unknown members of an object of Cluster API
	// that is converted. The API server takes objects of at most 1.5 MiB, and the longest lists in the schemas have 2,000
	// elements.
	ObjectElements = 50_000
	// ObjectPointers is the size of the JSON pointers of the values that differ between two objects, and of those above
	// them. Each repeats the names above it: 1 MiB of text can have 20 GiB of them.
	ObjectPointers = 8 << 20
	// Namespaces is the number of namespaces that the items of a request may be of. Cluster API sends the templates of
	// one Cluster, which are in its namespace. Each is looked up for each handler with a namespaceSelector.
	Namespaces = 100
	// NameBytes is the length of the longest name of a handler in a request. Registered names have at most 317 bytes: a
	// label of 63, a dot, and the name of an ExtensionConfig of 253.
	NameBytes = 512
	// ExplainedHandlers is the number of handlers and steps of chains that an explanation of a call lists.
	ExplainedHandlers = 500
)

// The limits of the records of what was last valid of Hookgate's own objects in a cluster.
const (
	// LastValidBytes is the size of the largest spec that is recorded, as JSON. The largest rules have some 100 KiB.
	LastValidBytes = 512 << 10
	// LastValidPerSecond is the number of records that are written or deleted per second: half of what the API server is
	// asked at most by default. After an upgrade, 2,000 objects take 40 seconds.
	LastValidPerSecond = 50
)

// The limits of the connections and streams of callers, for each of the two fronts.
const (
	// Connections is the number of open connections. Cluster API's manager has a few dozen. An idle one takes about
	// 50 KiB with TLS, so that all of them take a tenth of the memory that deploy/ allows.
	Connections = 1000
	// HostConnections is the number of open connections of one remote host, which may be a proxy for many callers.
	HostConnections = 500
	// Descriptors is the part of the process's descriptors that the connections of a front may have: one of so many. Half
	// of them are left, for probes, calls to extensions and files. SideDescriptors is that of each of the other addresses.
	Descriptors     = 4
	SideDescriptors = 16
	// Streams is the number of concurrent calls on a connection of HTTP/2 or gRPC: as RFC 9113 recommends at least,
	// and nginx and Envoy have by default.
	Streams = 100
	// Resets is the number of calls that a connection of HTTP/2 or gRPC may reset at once, and ResetsPerSecond how many
	// after that: a caller that is stopped resets all its Streams, and one that gives up resets a call after its timeout
	// of seconds. Calls of gRPC methods that do not exist count, too.
	Resets          = 2 * Streams
	ResetsPerSecond = 50
	// OverheadBytes is what a connection of HTTP/2 or gRPC may send besides the bodies of its calls, CallOverheadBytes
	// what it may for each open call besides, and each call that ends makes up for: its header, and what was on its way
	// when it was answered. A call of Cluster API takes less than 2 KiB, and reading an answer of 20 MiB up to 50 KiB of
	// WINDOW_UPDATE. Beyond these, all connections of a front together have OverheadBurst, and then
	// OverheadBytesPerSecond, some 15,000 of the smallest frames; those whose turn would come after OverheadWait are
	// closed. The burst is enough for the bodies of calls that have not begun to be handled.
	OverheadBytes          = 64 << 10
	CallOverheadBytes      = 256 << 10
	OverheadBurst          = 1 << 20
	OverheadBytesPerSecond = 512 << 10
	OverheadWait           = 10 * time.Second
	// HealthOverhead is how many bytes of overhead each byte counts as that an extension's health service says: a change
	// of 7 bytes makes gRPC choose among its connections anew.
	HealthOverhead = 64
	// RedialBurst is the number of connections to an address of an extension over gRPC that may be made at once, and
	// RedialInterval the time between two after that. gRPC waits by itself between attempts that fail, but not if the
	// server ends each connection once it has been made.
	RedialBurst    = 5
	RedialInterval = time.Second
	// HeaderBytes is the size of the header of a request, and of the metadata over gRPC.
	HeaderBytes = 64 << 10
	// HandshakeTimeout bounds the time from a connection to its first request's header over REST, and to the end of
	// its handshakes over gRPC.
	HandshakeTimeout = 10 * time.Second
	// ReceiveTimeout bounds the time to receive a request. 20 MiB at 3 Mbit/s take 56 s.
	ReceiveTimeout = 60 * time.Second
	// LingerBytes and LingerTimeout bound how much of a request is read after an answer that refuses it, so that the
	// caller, who may read nothing before all is sent, sees the answer.
	LingerBytes   = 256 << 20
	LingerTimeout = 10 * time.Second
	// DefaultCallerConnectionAge is the age at which callers are told to connect anew.
	DefaultCallerConnectionAge = 5 * time.Minute
	// IdleTimeout is how long a connection may be without a call. Clients in Go close theirs after 90 s.
	IdleTimeout = 3 * time.Minute
)

// The limits of the connections of the other addresses, for each of them: those of diagnostics, health and webhooks.
const (
	// SideConnections and SideHostConnections are the number of open connections, and of those of one remote host. An API
	// server has a few, and a browser six. All of them take 25 MiB with TLS.
	SideConnections     = 512
	SideHostConnections = 64
	// SideStreams is the number of concurrent requests on a connection of HTTP/2.
	SideStreams = 100
)

// The limits of the requests to webhooks. Whoever reaches the port can make them.
const (
	// AdmissionBytes and AdmissionValues are the bytes of a request for admission and the JSON values in it: it has two
	// objects, which the API server takes up to 1.5 MiB, with the overhead of JSON. A HookgateMachinePool with 10,000
	// instances has 70,000 values. A value takes up to 2 KiB of memory, even if the peer wrote {}.
	AdmissionBytes  = 7 << 20
	AdmissionValues = 200_000
	// Admissions is the number of requests for admission that are answered at the same time, and HostAdmissions how many
	// of them may be of one host. They have no more than AdmissionValues together.
	Admissions     = 8
	HostAdmissions = 4
	// ConversionBytes and ConversionValues are those of a request for conversion, which has all objects of a list: 2,000
	// ExtensionConfigs with ten handlers each have 400,000 values.
	ConversionBytes  = 64 << 20
	ConversionValues = 1_000_000
	// Conversions and HostConversions bound requests for conversion, which have no more than ConversionValues together.
	Conversions     = 2
	HostConversions = 1
	// WebhookRequests is the number of requests of one host that may be there, waiting ones too, for conversion and for
	// admission.
	WebhookRequests = 256
	// WebhookReceiveTimeout bounds the time for the body of a request to come. The API server has all of it.
	WebhookReceiveTimeout = 10 * time.Second
)

// The limits of the connections to extensions.
const (
	// IdleConnections is the number of idle connections that are kept to a host, for a minute. They are as many as calls
	// were in flight there: an extension has 256 unless a policy allows more, and several extensions may share a host. A
	// call that finds none makes a handshake: with 1,000 callers, 1,024 calls in flight and 256 idle connections, that
	// were 0.7 handshakes and 3.8 ms of CPU for each small call, instead of none and 0.34 ms. IdleConnectionBytes is what
	// one takes with TLS, its goroutines and buffers included, and LeastIdleConnections how many there may be however
	// little memory there is.
	IdleConnections      = 4096
	IdleConnectionBytes  = 50 << 10
	LeastIdleConnections = 256
)

// AbandonedDials is the number of connections to a host that are being made for calls that have ended meanwhile. Each
// takes up to 10 s if the host does not answer, and a caller may give up thousands of calls in that time.
const AbandonedDials = 64

// The limits of scrapes of metrics.
const (
	// Scrapes is the number of scrapes that are served or wait. A few Prometheus servers scrape every 15 s.
	Scrapes = 16
	// ScrapeTimeout bounds the time of one scrape, until its answer has been read. Prometheus gives up after 10 s.
	ScrapeTimeout = 30 * time.Second
)

// The limits of a registration: Cluster API's schema of ExtensionConfig, and its rules for discovery.
const (
	// Handlers is the number of handlers that the status of an ExtensionConfig has room for.
	Handlers = 512
	// AllHandlers is the number of handlers of all ExtensionConfigs together, rules and chains included: 2,000 with ten
	// each, and a quarter more. One takes 2 KiB, and with the metrics of its calls 9 KiB: 48 MiB idle, and 220 MiB if each
	// has been called.
	AllHandlers = 25_000
	// URLBytes is the length of the longest spec.clientConfig.url.
	URLBytes = 512
	// CABundleBytes is the size of the largest spec.clientConfig.caBundle, as base64 text.
	CABundleBytes = 51200
	// ProbeInterval is how often it is looked whether the server of an extension is there. That costs a system call as a
	// rule, and a handshake of about 1 ms of a processor if there is no idle connection.
	ProbeInterval = 2 * time.Second
	// ProbeTimeout bounds one look.
	ProbeTimeout = 2 * time.Second
	// ProbesPerSecond bounds the looks at all servers: up to 200 are looked at every 2 s, and 10,000 every 100 s.
	ProbesPerSecond = 100
	// DiscoveryTimeout bounds one attempt to discover the handlers of an extension.
	DiscoveryTimeout = 10 * time.Second
)

// The limits of data read from files and written to objects.
const (
	// ManifestBytes is the size of the largest manifest file.
	ManifestBytes = 8 << 20
	// ManifestDocuments is the number of documents that a manifest file may have. A Kubernetes object has about 1 KiB,
	// and 10,000 of them fill the file.
	ManifestDocuments = 10_000
	// ManifestValues is the number of values that a manifest file may have, counted before they are built: lines, and
	// characters that separate values, within text too. All definitions of Cluster API have less than half as many, and
	// a value takes 250 bytes once it is built.
	ManifestValues = 500_000
	// ManifestProblems is how many problems of one manifest file are reported. A person mends the first ones first.
	ManifestProblems = 100
	// ManifestsBytes is the size of all manifest files of a directory together, which stay in memory.
	ManifestsBytes = 32 << 20
	// StateBytes is the size of the largest file of a state directory, which has the handlers of one extension: 512 of
	// them, with names and hooks of 63 bytes, take 180 KiB.
	StateBytes = 1 << 20
	// ManifestFiles is the number of manifest files of a directory. With one ExtensionConfig of 1.5 KiB each, they fill
	// ManifestsBytes.
	ManifestFiles = 20_000
	// CertificateFileBytes is the size of the largest file with certificates or a key. A chain has less than 20 KiB, and
	// the bundle of all authorities that Mozilla trusts 250 KiB.
	CertificateFileBytes = 1 << 20
	// ShownCertificates is the number of remembered certificates that the servers of one extension have shown.
	// ShownCertificateTime is how long each but the last counts after it was shown.
	ShownCertificates    = 4
	ShownCertificateTime = 15 * time.Minute
	// Problems is the number of problems of an object that are reported, and ProblemBytes the length to which the texts of
	// each are cut. A URL has at most 512 bytes.
	Problems     = 20
	ProblemBytes = 1 << 10
	// ConditionMessageBytes is the length to which the message of a condition is cut. The API has room for 32 KiB.
	ConditionMessageBytes = 4 << 10
	// StatusPolicies is the number of policies that the status lists, StatusChains that of the chains, StatusLocals that
	// of the rules, and PolicyMessageBytes the length to which it cuts the message of each.
	StatusPolicies     = 10_000
	StatusChains       = 1_000
	StatusLocals       = 10_000
	PolicyMessageBytes = 1 << 10
	// EventNoteBytes is the length to which the note of an event is cut. The API has room for 1 KiB.
	EventNoteBytes = 1000
)

// The limits of authentication.
const (
	// TokenBytes is the length of the longest bearer token. Tokens of service accounts have about 1 KiB, and those of
	// identity providers with many groups some KiB.
	TokenBytes = 16 << 10
	// CallersFileBytes and Callers are the size of the largest file of callers, and the number of callers in it. A
	// gateway usually has fewer than ten.
	CallersFileBytes = 1 << 20
	Callers          = 1000
	// ReviewLifetime is how long an answer of the API server about a token is used, and thus how long a token that was
	// revoked may still call. ReviewsKept bounds the answers that are kept, each of about 1 KiB.
	ReviewLifetime = 10 * time.Second
	ReviewsKept    = 4096
	// ReviewTimeout bounds a question to the API server. ReviewsPerSecond and ReviewsWaiting bound the questions that
	// callers with ever new tokens cause. A caller asks one question per hook in ReviewLifetime.
	ReviewTimeout    = 5 * time.Second
	ReviewsPerSecond = 100
	ReviewsWaiting   = 256
	// CallerRate and CallerCalls are the calls per second and the calls in flight of one caller. Cluster API calls
	// GeneratePatches at most a few times in each reconciliation of a Cluster, of which it has 10 at the same time unless
	// it is configured otherwise. The gateway itself manages about 10,000 small calls per second on two cores.
	CallerRate  = 10_000
	CallerCalls = 1000
	// TrackedCallers is the number of callers whose calls are counted, each in about 200 bytes.
	TrackedCallers = 10_000
	// CallerNameBytes is the length to which the name of a caller is cut. The longest name of a DNS name has 253.
	CallerNameBytes = 256
)
