# bash completion for dl-report; make docs writes its generated parts

. "${BASH_SOURCE[0]%dl-report*}dl-plan${BASH_SOURCE[0]##*dl-report}"  # what they share

_dl_report() {
    local text before prefix=
    _dltools_split
    # generated: options
    case $before in
        --baseline|--by) COMPREPLY=() ;;
        --prices|-o|--output) _dltools_files -f ;;
        --plot) _dltools_reply gantt limits progress responses ;;
        --format) _dltools_reply auto table markdown csv jsonl html svg png pdf ;;
        *)
            if [[ $text == -* ]]; then
                _dltools_reply --baseline --jobs --by --prices --plot --output --format --quiet --version --help
            else
                _dltools_files -f
            fi ;;
    esac
    # end
}
complete -o filenames -F _dl_report dl-report
