package client

// Kind says how a call failed.
type Kind string

const (
	HTTP       Kind = "http"       // the daemon answered with a status other than 2xx
	Daemon     Kind = "daemon"     // the stream says that the answer failed
	Cut        Kind = "cut"        // the response broke off
	Timeout    Kind = "timeout"    // a limit of Options has passed
	Protocol   Kind = "protocol"   // what came is no response of the contract
	Connection Kind = "connection" // there was no response
)

// An Error is why a call failed; errors.As finds it.
type Error struct {
	Kind    Kind
	Status  int    // of the response; 0 unless Kind is HTTP
	Code    string // of the daemon's problem or error event; empty if it has none
	Message string
	cause   error
}

func (e *Error) Error() string { return "memory daemon: " + e.Message }

// Unwrap returns the error of the transport or the decoder, if there is one.
func (e *Error) Unwrap() error { return e.cause }

func wrap(kind Kind, message string, cause error) *Error {
	return &Error{Kind: kind, Message: message + ": " + cause.Error(), cause: cause}
}
