# bash completion for dl-sim; make docs writes its generated parts

. "${BASH_SOURCE[0]%dl-sim*}dl-plan${BASH_SOURCE[0]##*dl-sim}"  # what they share

_dl_sim() {
    local text before prefix=
    _dltools_split
    # generated: options
    case $before in
        -p|--policy) _dltools_reply flowcon tradl dqoes specon noop fair las slaq srtf ;;
        --set) _dltools_set "noop flowcon tradl slaq las srtf" $(_dltools_policies) ;;
        --from|-o|--output) _dltools_files -f ;;
        --generate) _dltools_reply fixed: random: poisson: burst: ;;
        --gap|--cpus|--nodes|--seed|--repeat|--spin|-i|--interval|--quantum) COMPREPLY=() ;;
        --best) _dltools_reply mean_completion makespan time_to_target satisfied ;;
        --format) _dltools_reply auto table jsonl csv ;;
        --realize) _dltools_reply auto quota weight priority rotate ;;
        *)
            if [[ $text == -* ]]; then
                _dltools_reply --policy --set --clairvoyant --from --generate --gap --cpus --nodes --seed --repeat --spin --best --output --interval --jobs --format --realize --quantum --quiet --version --help
            else
                _dltools_files -f
            fi ;;
    esac
    # end
}
complete -o filenames -F _dl_sim dl-sim
