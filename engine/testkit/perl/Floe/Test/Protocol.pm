
=pod

=head1 NAME

Floe::Test::Protocol - a client that shows each message of the server, and when it came

=head1 SYNOPSIS

  use Floe::Test::Protocol;

  my $client = Floe::Test::Protocol->new($node, options => '-c synchronous_commit=off');
  $client->query('INSERT INTO t VALUES (1)');
  is_deeply([ $client->until_ready ], [ 'C INSERT 0 1', 'Z I' ]);

psql and libpq hide what of an answer came before a connection ended.

=cut

package Floe::Test::Protocol;

use strict;
use warnings FATAL => 'all';
use Carp;
use IO::Socket::INET;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time);

=pod

=over

=item Floe::Test::Protocol->new(node [, parameter => value …])

Connects to the database postgres. The parameters are those of the startup message: user, database, options; and version, that of
the protocol as the message has it (196608, which is 3.0).

=cut

sub new
{
	my ($class, $node, %parameters) = @_;
	return $class->_start($node->raw_connect, %parameters);
}

=pod

=item Floe::Test::Protocol->to_port(port [, parameter => value …])

The same by TCP, to a port of 127.0.0.1.

=cut

sub to_port
{
	my ($class, $port, %parameters) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or croak "could not connect: $!";
	return $class->_start($socket, %parameters);
}

=pod

=item Floe::Test::Protocol->over(socket [, parameter => value …])

The same by a connection that is there.

=cut

sub over
{
	my ($class, $socket, %parameters) = @_;
	return $class->_start($socket, %parameters);
}

sub _start
{
	my ($class, $socket, %parameters) = @_;
	%parameters = (user => scalar getpwuid($<), database => 'postgres', %parameters);
	my $version = delete $parameters{version} // 196608;
	my $self = bless { socket => $socket, bytes => '', status => {} }, $class;
	my $startup = join '', map { "$_\0$parameters{$_}\0" } sort keys %parameters;
	$self->_write(pack('N N a*', length($startup) + 9, $version, "$startup\0"));
	$self->until_ready;
	return $self;
}

=pod

=item $client->pid

The process that serves this connection.

=cut

sub pid { my ($self) = @_; return $self->{pid}; }

=pod

=item $client->key

The key with which a command of this connection can be cancelled.

=cut

sub key { my ($self) = @_; return $self->{key}; }

=pod

=item $client->notifier

Whose the last notification was.

=cut

sub notifier { my ($self) = @_; return $self->{notifier}; }

=pod

=item $client->status

What the server has reported of its settings: the last value of each, by name.

=cut

sub status { my ($self) = @_; return $self->{status}; }

=pod

=item $client->sqlstate

The SQLSTATE of the last error.

=cut

sub sqlstate { my ($self) = @_; return $self->{sqlstate}; }

=pod

=item $client->detail

The detail of the last error, or nothing.

=cut

sub detail { my ($self) = @_; return $self->{detail}; }

=pod

=item $client->socket

The socket, for a client that behaves badly.

=cut

sub socket { my ($self) = @_; return $self->{socket}; }

=pod

=item $client->query(text)

Sends a text of one command or more by the simple protocol.

=cut

sub query
{
	my ($self, $text) = @_;
	return $self->_send('Q', "$text\0");
}

=pod

=item $client->extended(text)

Sends one command by the extended protocol: Parse, Bind, Execute and Sync at once.

=cut

sub extended
{
	my ($self, $text) = @_;
	$self->_send('P', "\0$text\0" . pack('n', 0));
	$self->_send('B', "\0\0" . pack('n n n', 0, 0, 0));
	$self->_send('E', "\0" . pack('N', 0));
	return $self->_send('S', '');
}

=pod

=item $client->parse(name, text), $client->run(name, value), $client->describe(name), $client->close(name)

The messages of the extended protocol one at a time, each with a Sync: a statement is prepared, run (with the value for its
parameter, if it has one), described, closed.

=cut

sub parse
{
	my ($self, $name, $text) = @_;
	$self->_send('P', "$name\0$text\0" . pack('n', 0));
	$self->{parameters}{$name} = $text =~ /\$1/ ? 1 : 0;
	return $self->_send('S', '');
}

sub run
{
	my ($self, $name, $value) = @_;
	my $values = $self->{parameters}{$name} ? pack('n N/a*', 1, $value) : pack('n', 0);
	$self->_send('B', "\0$name\0" . pack('n', 0) . $values . pack('n', 0));
	$self->_send('E', "\0" . pack('N', 0));
	return $self->_send('S', '');
}

sub describe
{
	my ($self, $name) = @_;
	$self->_send('D', "S$name\0");
	return $self->_send('S', '');
}

sub close
{
	my ($self, $name) = @_;
	$self->_send('C', "S$name\0");
	return $self->_send('S', '');
}

=pod

=item $client->until_ready

The messages up to ReadyForQuery, each a string: its type and what it says. Dies when the connection ends before.

=cut

sub until_ready
{
	my ($self) = @_;
	my @messages;
	while (1)
	{
		my $message = $self->_message // croak 'the connection ended after: ' . join(', ', @messages);
		push @messages, $message;
		return @messages if $message =~ /^Z/;
	}
}

=pod

=item $client->until_closed

The messages up to the end of the connection.

=cut

sub until_closed
{
	my ($self) = @_;
	my @messages;
	while (defined(my $message = $self->_message)) { push @messages, $message; }
	return @messages;
}

=pod

=item $client->until(pattern)

The messages up to one that matches.

=cut

sub until
{
	my ($self, $pattern) = @_;
	my @messages;
	while (1)
	{
		my $message = $self->_message // croak 'the connection ended after: ' . join(', ', @messages);
		push @messages, $message;
		return @messages if $message =~ $pattern;
	}
}

=pod

=item $client->arrived

How many bytes have come that no message was made of yet, without waiting for any.

=back

=cut

sub arrived
{
	my ($self) = @_;
	$self->_read while $self->_readable(0) && !$self->{closed};
	return length $self->{bytes};
}

sub _write
{
	my ($self, $bytes) = @_;
	local $SIG{PIPE} = 'IGNORE';
	defined(syswrite $self->{socket}, $bytes) or croak "could not send: $!";
	return;
}

sub _send
{
	my ($self, $type, $body) = @_;
	return $self->_write($type . pack('N', length($body) + 4) . $body);
}

sub _readable
{
	my ($self, $seconds) = @_;
	my $set = '';
	vec($set, fileno $self->{socket}, 1) = 1;
	return select $set, undef, undef, $seconds;
}

sub _read
{
	my ($self) = @_;
	my $got = sysread $self->{socket}, $self->{bytes}, 65536, length $self->{bytes};
	$self->{closed} = 1 unless $got;
	return;
}

# The next message, or undef at the end of the connection; a message that was cut short is none.
sub _message
{
	my ($self) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	while (1)
	{
		if (length $self->{bytes} >= 5)
		{
			my ($type, $length) = unpack 'a N', $self->{bytes};
			if (length $self->{bytes} > $length)
			{
				my $body = substr $self->{bytes}, 5, $length - 4;
				substr($self->{bytes}, 0, $length + 1) = '';
				($self->{pid}, $self->{key}) = unpack 'N a*', $body if $type eq 'K';
				$self->{notifier} = unpack 'N', $body if $type eq 'A';
				if ($type eq 'S') { my ($name, $value) = split /\0/, $body; $self->{status}{$name} = $value // ''; }
				next if $type =~ /[RSK]/;
				return $self->_words($type, $body);
			}
		}
		return undef if $self->{closed};
		my $left = $deadline - time;
		croak 'timed out waiting for a message' if $left <= 0 || !$self->_readable($left);
		$self->_read;
	}
}

sub _words
{
	my ($self, $type, $body) = @_;
	return "$type $body" if $type eq 'Z';
	return "$type " . $body =~ s/\0\z//r if $type eq 'C';
	if ($type eq 'N' || $type eq 'E')
	{
		my %field = map { /^(.)(.*)/s } split /\0/, $body;
		@$self{qw(sqlstate detail)} = ($field{C}, $field{D} // '') if $type eq 'E';
		return "$type $field{V}: $field{M}";
	}
	if ($type eq 'D')
	{
		my ($columns, $rest) = unpack 'n a*', $body;
		my @values;
		for (1 .. $columns)
		{
			my $length = unpack 'l>', $rest;
			push @values, $length < 0 ? '' : substr $rest, 4, $length;
			$rest = substr $rest, 4 + ($length < 0 ? 0 : $length);
		}
		return 'D ' . join '|', @values;
	}
	return $type;
}

1;
