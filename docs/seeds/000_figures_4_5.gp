# gnuplot 000_figures_4_5.gp makes 000_figures_4_5.svg.
set encoding utf8
set terminal svg size 860,420 noenhanced font 'sans,11' background 'white'
set output '000_figures_4_5.svg'
set datafile missing '?'
set grid
set logscale y
set linetype 5 lc rgb 'dark-goldenrod'
set linetype 9 lc rgb 'gray40'
set style fill solid 0.8
set boxwidth 0.9
set xtics rotate by -25
set key outside right top
set title "Figures 4 and 5: what a message of 2 MiB takes, step by step"
set format y '%.0s %cs'
plot '000_figures_4_5.dat' using 2:xtic(1) with histogram lt 1 title "paper: first reduction", \
  '000_figures_4_5.dat' using 3:xtic(1) with histogram lt 2 title "first reduction", \
  '000_figures_4_5.dat' using 4:xtic(1) with histogram lt 3 title "paper: second reduction", \
  '000_figures_4_5.dat' using 5:xtic(1) with histogram lt 4 title "second reduction"
