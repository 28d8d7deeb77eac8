
=pod

=head1 NAME

Floe::Test::Names - the names of hosts, when nobody answers who could tell

=head1 SYNOPSIS

  use Floe::Test::Names qw(slow_names);

  my $names = slow_names() or plan skip_all => 'no C compiler';
  local $ENV{LD_PRELOAD} = $names->{library};
  local $ENV{FLOE_SLOW_NAMES} = $names->{mark};
  $names->{block}->();    # whoever looks up a name from now on waits
  $names->{release}->();

=head1 DESCRIPTION

A small library put before the C library keeps getaddrinfo() waiting, for a name that is not a path, as long as a file exists.

=cut

package Floe::Test::Names;

use strict;
use warnings FATAL => 'all';
use Exporter 'import';
use PostgreSQL::Test::Utils;
use Floe::Test::Library qw(build_library);

our @EXPORT_OK = qw(slow_names);

my $library = <<'C';
#include <netdb.h>

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **result)
{
	int (*next) (const char *, const char *, const struct addrinfo *, struct addrinfo **) = NEXT(getaddrinfo);
	const char *mark = getenv("FLOE_SLOW_NAMES");

	/* A signal ends one nap, not the waiting: as with a resolver */
	while (name != NULL && mark != NULL && access(mark, F_OK) == 0)
		usleep(20000);
	return next(name, service, hints, result);
}
C

=pod

=over

=item slow_names()

Returns undef without a C compiler, else {library, mark, block, release}.

=back

=cut

sub slow_names
{
	my $target = build_library($library);
	return undef unless $target;
	my $mark = PostgreSQL::Test::Utils::tempdir('names') . '/mark';
	return {
		library => $target,
		mark => $mark,
		block => sub { append_to_file($mark, ''); return },
		release => sub { unlink $mark; return },
	};
}

1;
